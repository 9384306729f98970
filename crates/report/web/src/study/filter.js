// Which rows are shown: one choice for all tables and their charts.

import { tables } from './data.js';

const value = (id) => document.getElementById(id)?.value ?? '';
const listeners = [];

/** Whether a row is wanted. */
export function isShown(row) {
  const group = value('group');
  const words = value('find').toLowerCase().split(/\s+/).filter(Boolean);
  return (!group || row.group === group) && words.every((word) => row.name.toLowerCase().includes(word));
}

/** Calls back whenever the choice changes. */
export const whenShown = (listener) => listeners.push(listener);

function apply() {
  let [shown, all] = [0, 0];
  for (const article of document.querySelectorAll('article[data-table]')) {
    const { rows } = tables[article.dataset.table];
    for (const line of article.querySelectorAll('tr[data-row]')) {
      line.hidden = !isShown(rows[line.dataset.row]);
      all += 1;
      if (!line.hidden) shown += 1;
    }
    const part = [...article.querySelectorAll('tr[data-row]')].some((line) => line.hidden);
    for (const body of article.querySelectorAll('.heat tbody')) {
      const lines = [...body.querySelectorAll('tr[data-row]')];
      body.hidden = lines.every((line) => line.hidden);
      // A mean stands for all rows of its group.
      for (const mean of body.querySelectorAll('tr.mean')) mean.hidden = lines.some((line) => line.hidden);
    }
    const foot = article.querySelector('.heat tfoot');
    if (foot) foot.hidden = part;
  }
  document.getElementById('shown').textContent = shown === all ? `all ${all} rows` : `${shown} of ${all} rows`;
  for (const listener of listeners) listener();
}

export function filters() {
  const form = document.getElementById('filters');
  if (!form) return;
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('input', ({ target }) => target.type !== 'radio' && apply());
  // A reload may keep what was typed.
  apply();
}
