// The tables: exact values over a figure or at the focus, which the arrow keys move.

import { isClaim, tables, verdictOf } from './data.js';
import { hideTip, showTip } from '../floating.js';
import { changeInterval, escape, exact, ratioInterval, rows } from '../format.js';

/** All that a figure says, with every digit. */
export function figureTip(table, row, column) {
  const figure = row.figures[column];
  if (!figure) return `<b>${escape(row.name)}</b><div>not measured</div>`;
  const base = column === table.base;
  const list = base ? [] : [['relative', ratioInterval(figure), changeInterval(figure, 2)]];
  list.push([table.metric_name, `${exact(figure.absolute)} ${table.unit}`, '']);
  if (figure.relative) list.push(['candidate / base here', ratioInterval(figure.relative), changeInterval(figure.relative, 2)]);
  if (figure.efficiency != null) list.push(['efficiency (share of linear growth)', `${(100 * figure.efficiency).toFixed(1)}\u00a0%`, '']);
  if (figure.cpu && !base) list.push(['CPU per operation', ratioInterval(figure.cpu), changeInterval(figure.cpu, 2)]);
  if (figure.switches && !base) list.push(['context switches per operation', ratioInterval(figure.switches), changeInterval(figure.switches, 2)]);
  if (figure.perCost != null) list.push(['per unit of monthly cost', `${exact(figure.perCost)} ops/s`, '']);
  const verdict = verdictOf.get(figure.verdict);
  const said = base
    ? 'the base of this table'
    : verdict
      ? `${verdict.sign} ${verdict.word}${isClaim(figure) ? '' : ': no answer'}`
      : 'not judged';
  const loads = figure.repetitions > 1 ? `; ${figure.repetitions} loads of the data; the interval contains how much they differ` : '; one load of the data';
  return `<b>${escape(row.name)}</b> ${escape(table.columns[column].name)}<div>${escape(said + loads)}</div>${rows(list)}`;
}

export function heat() {
  for (const article of document.querySelectorAll('article[data-table]')) {
    const table = tables[article.dataset.table];
    const body = article.querySelector('.heat');
    const at = (cell) => {
      const line = cell?.closest('tr[data-row]');
      return line && cell.cellIndex > 0 ? figureTip(table, table.rows[line.dataset.row], cell.cellIndex - 1) : null;
    };
    body.addEventListener('pointermove', (event) => {
      const text = event.pointerType !== 'touch' && at(event.target.closest('td'));
      if (text) showTip(text, event.clientX, event.clientY);
      else hideTip();
    });
    body.addEventListener('pointerleave', hideTip);
    body.addEventListener('click', (event) => {
      const text = at(event.target.closest('td'));
      if (text) showTip(text, event.clientX, event.clientY);
    });
    keys(body, at);
  }
}

/** One figure of each table can be reached by Tab; the arrow keys go on from there. */
function keys(body, at) {
  const first = body.querySelector('tr[data-row] td');
  if (first) first.tabIndex = 0;
  body.addEventListener('focusin', ({ target }) => {
    if (!target.matches('td:focus-visible')) return;
    const place = target.getBoundingClientRect();
    const text = at(target);
    if (text) showTip(text, place.left, place.bottom - 14);
  });
  body.addEventListener('focusout', hideTip);
  body.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest('td');
    if (!step || !cell) return;
    event.preventDefault();
    const lines = [...body.querySelectorAll('tr[data-row]:not([hidden])')].filter((line) => !line.closest('[hidden]'));
    const line = lines[lines.indexOf(cell.parentElement) + step[0]];
    const next = line?.cells[cell.cellIndex + step[1]];
    if (!next || next.tagName !== 'TD') return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    // What the heads cover is not seen.
    next.scrollIntoView({ block: 'nearest', inline: 'center' });
  });
}
