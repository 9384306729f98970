// The table of values: sorting, filtering, exact values.

import { cellOf, metrics, verdictOf } from './page.js';
import { whenShown } from './filter.js';
import { hideTip, showTip } from './floating.js';
import { cellTip } from './tip.js';

export function table() {
  const body = document.querySelector('.numbers tbody');
  const lines = [...body.rows].map((row, place) => ({ row, place, cell: cellOf.get(row.dataset.cell) }));
  const heads = [...document.querySelectorAll('.numbers [data-sort]')];
  let sorted = { key: null, down: false };

  const keyOf = (line, key, column) => {
    const metric = metrics.findIndex((one) => one.compared && one.key === key);
    if (metric >= 0) return line.cell.values[metric]?.ratio ?? null;
    if (key === 'verdict') return verdictOf.get(line.cell.verdict).rank;
    if (key === 'name') return [line.cell.name, line.cell.clients];
    if (key === 'candidate') return [line.cell.candidateName, line.place];
    const value = Number(line.row.cells[column].dataset.value);
    return Number.isNaN(value) ? null : value;
  };

  const order = () => {
    const column = heads.findIndex((head) => head.dataset.sort === sorted.key);
    const keyed = lines.map((line) => ({ ...line, key: sorted.key ? keyOf(line, sorted.key, column) : line.place }));
    keyed.sort((a, b) => (sorted.down ? -1 : 1) * compare(a.key, b.key) || a.place - b.place);
    // What is not known comes last either way.
    const known = keyed.filter((line) => line.key !== null);
    body.append(...known.map((line) => line.row), ...keyed.filter((line) => line.key === null).map((line) => line.row));
  };

  for (const head of heads) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'sort';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const key = head.dataset.sort;
      // Rising, falling, as planned.
      sorted = sorted.key !== key ? { key, down: false } : sorted.down ? { key: null, down: false } : { key, down: true };
      for (const other of heads) other.removeAttribute('aria-sort');
      if (sorted.key) head.setAttribute('aria-sort', sorted.down ? 'descending' : 'ascending');
      order();
    });
  }

  whenShown((shown) => {
    const wanted = new Set(shown);
    for (const { row, cell } of lines) row.hidden = !wanted.has(cell);
  });

  body.addEventListener('pointermove', (event) => {
    const row = event.target.closest('tr');
    if (row && event.pointerType !== 'touch') showTip(cellTip(cellOf.get(row.dataset.cell)), event.clientX, event.clientY);
  });
  body.addEventListener('pointerleave', hideTip);
  body.addEventListener('focusin', (event) => {
    const row = event.target.closest('tr');
    if (!row || !event.target.matches(':focus-visible')) return;
    const place = row.getBoundingClientRect();
    showTip(cellTip(cellOf.get(row.dataset.cell)), place.left, place.bottom - 14);
  });
  body.addEventListener('focusout', hideTip);
}

function compare(a, b) {
  if (Array.isArray(a)) return compare(a[0], b[0]) || compare(a[1], b[1]);
  if (typeof a === 'string') return a.localeCompare(b, 'en', { numeric: true });
  return (a ?? 0) - (b ?? 0);
}
