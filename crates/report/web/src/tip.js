// Exact values of a cell: in the forest's tooltip and beside a row of the table.

import { candidates, metrics } from './page.js';
import { changeInterval, escape, exact, ratioInterval, rows, share } from './format.js';

/** All that a cell says, with every digit. */
export function cellTip(cell) {
  const on = candidates.length > 1 ? ` on ${cell.candidateName}` : '';
  const list = cell.values.flatMap((value, place) =>
    value
      ? [[metrics[place].name, `${exact(value.base)} → ${exact(value.candidate)} ${metrics[place].unit}`, ratioInterval(value), changeInterval(value, 2), value.difference]]
      : [],
  );
  if (cell.published) {
    const { base, candidate, unit } = cell.published;
    list.push(['published figure', `${exact(base)} → ${exact(candidate)} ${unit}`]);
  }
  if (cell.withheld) list.unshift(['throughput', cell.withheld]);
  const gone = cell.withdrawn ? `<div><b>withdrawn</b>: ${escape(cell.withdrawn)}</div>` : '';
  return `<b>${escape(`${cell.name}, ${cell.clientsText}${on}`)}</b>${gone}<div>${escape(cell.reason)}</div>${rows([
    ['', 'base → candidate', 'ratio [95 %]', 'change [95 %]', list.some((row) => row[4]) ? 'difference [95 %]' : ''],
    ...list,
  ])}<div>δ ±${share(cell.delta)}</div>`;
}
