// Which cells are shown: one choice for forest, table and cards.

import { cells } from './page.js';

const form = document.getElementById('filters');
const listeners = [];
let shown = cells;

function matches(cell, wanted) {
  const words = `${cell.name} ${cell.clientsText}`.toLowerCase();
  return (
    wanted.words.every((word) => words.includes(word)) &&
    (!wanted.group || cell.group === wanted.group) &&
    (!wanted.candidate || String(cell.candidate) === wanted.candidate) &&
    wanted.verdicts.has(cell.verdict)
  );
}

function apply() {
  const value = (id) => document.getElementById(id)?.value ?? '';
  const boxes = [...form.querySelectorAll('#verdicts input')];
  const wanted = {
    words: value('find').toLowerCase().split(/\s+/).filter(Boolean),
    group: value('group'),
    candidate: value('candidate'),
    verdicts: new Set(boxes.filter((box) => box.checked).map((box) => box.value)),
  };
  shown = cells.filter((cell) => matches(cell, wanted));
  document.getElementById('shown').textContent =
    shown.length === cells.length ? `all ${cells.length} cells` : `${shown.length} of ${cells.length} cells`;
  for (const listener of listeners) listener(shown);
}

/** Calls back now and whenever the choice changes. */
export function whenShown(listener) {
  listeners.push(listener);
  listener(shown);
}

export function start() {
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('input', apply);
  // A reload may keep what was typed.
  apply();
}

/** Shows a cell that a filter hides, because somebody asked for it by name. */
export function reveal(cell) {
  if (shown.includes(cell)) return;
  form.reset();
  apply();
}
