// The script of the report page. Each part stands alone: if one fails, what is on the page without it stays.

import { drawAll } from './chart.js';
import { cards } from './cards.js';
import { start } from './filter.js';
import { forest } from './forest.js';
import { host } from './host.js';
import { bars, overCandidates, overClients } from './published.js';
import { table } from './table.js';

const root = document.documentElement;
// What needs a script becomes visible, and the static forest hides, once the script is here.
for (const part of [forest, table, cards, bars, overClients, overCandidates, host, start]) {
  try {
    part();
  } catch (error) {
    if (part === forest) root.classList.remove('scripts');
    console.error(error);
  }
}

// Everything is drawn and open in print, and closed again afterwards; long tables of costs only where they are open.
let closed = [];
addEventListener('beforeprint', () => {
  // Some browsers announce a print twice.
  closed.push(...document.querySelectorAll('details:not([open], .costs-of)'));
  for (const details of closed) details.open = true;
  drawAll();
});
addEventListener('afterprint', () => {
  for (const details of closed) details.open = false;
  closed = [];
});
