// The script of the report pages: a run's, or a study's. The modules of the other kind are never started.

import { drawAll } from './chart.js';

if (document.getElementById('study')) import('./study/page.js').then(({ study }) => study());
else import('./run.js').then(({ run }) => run());

// Everything is drawn and open in print, and closed again afterwards; what is long, only where it is open.
let closed = [];
addEventListener('beforeprint', () => {
  // Some browsers announce a print twice.
  closed.push(...document.querySelectorAll('details:not([open], .costs-of, .spreads, .charts)'));
  for (const details of closed) details.open = true;
  drawAll();
});
addEventListener('afterprint', () => {
  for (const details of closed) details.open = false;
  closed = [];
});
