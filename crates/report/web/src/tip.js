// Exact values of a cell: in the forest's tooltip and beside a row of the table.

import { candidates, metrics } from './page.js';
import { changeInterval, escape, exact, ratioInterval, rows, share } from './format.js';

/** All that a cell says, with every digit. */
export function cellTip(cell) {
  const on = candidates.length > 1 ? ` on ${cell.candidateName}` : '';
  const list = cell.values.flatMap((value, place) =>
    value
      ? [[metrics[place].name, `${exact(value.base)} → ${exact(value.candidate)} ${metrics[place].unit}`, ratioInterval(value), changeInterval(value, 2)]]
      : [],
  );
  if (cell.published) {
    const { base, candidate, unit } = cell.published;
    list.push(['published figure', `${exact(base)} → ${exact(candidate)} ${unit}`, '', '']);
  }
  const gone = cell.withdrawn ? `<div><b>withdrawn</b>: ${escape(cell.withdrawn)}</div>` : '';
  return `<b>${escape(`${cell.name}, ${cell.clientsText}${on}`)}</b>${gone}<div>${escape(cell.reason)}</div>${rows([
    ['', 'base → candidate', 'ratio [95 %]', 'change [95 %]'],
    ...list,
  ])}<div>δ ±${share(cell.delta)}</div>`;
}

const tip = document.createElement('div');
tip.className = 'tip floating';
tip.setAttribute('role', 'status');
tip.hidden = true;

export function showTip(html, x, y) {
  if (!tip.isConnected) document.body.append(tip);
  tip.innerHTML = html;
  tip.hidden = false;
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${Math.max(4, y + 18 + height > innerHeight ? y - height - 12 : y + 18)}px`;
}

export function hideTip() {
  tip.hidden = true;
}

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') hideTip();
});
document.addEventListener('scroll', hideTip, { passive: true });
