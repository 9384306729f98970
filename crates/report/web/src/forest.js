// The forest plot: a row for each cell, with its interval, its ±δ, the placebo; a click leads to the cell's card.

import {
  base, candidates, cells, compared, groups, means, metrics, placebo, placeboOf, severalClients, valueOf, verdictOf,
} from './page.js';
import { axis, colour, draw, FONT, text, tooltip } from './chart.js';
import { change, changeInterval, limitOf, share, tickDigits } from './format.js';
import { whenShown } from './filter.js';
import { cellTip } from './tip.js';
import { go } from './cards.js';

const element = document.getElementById('forest-chart');
const metricOf = () => Number(document.getElementById('metric').value);
const several = candidates.length > 1;
let shown = [];
let rows = [];
let chart;

/** Every metric that has a ratio somewhere; costs in a list of their own. */
function options() {
  const select = document.getElementById('metric');
  const option = (place) =>
    new Option(place < compared ? metrics[place].name : `${metrics[place].name} - ${metrics[place].meaning}`, place);
  const has = metrics.map((_, place) => cells.some((cell) => valueOf(cell, place) || (place === 0 && cell.withheld)));
  const costs = document.createElement('optgroup');
  costs.label = 'costs of an operation';
  has.forEach((there, place) => there && (place < compared ? select : costs).append(option(place)));
  if (costs.childElementCount) select.append(costs);
}

/** The rows in their order: headings and means only in the planned order. */
function rowsOf(order, metric) {
  const row = (cell) => ({ kind: 'cell', cell, value: valueOf(cell, metric) });
  const all = shown.map(row);
  if (order === 'group') return grouped(all, metric);
  const effect = (one) => {
    if (!one.value) return Infinity;
    const size = Math.log(one.value.ratio);
    return metrics[metric].better === 'lower' ? -size : size;
  };
  const by = {
    effect: (a, b) => effect(a) - effect(b),
    name: (a, b) => a.cell.name.localeCompare(b.cell.name, 'en', { numeric: true }) || a.cell.clients - b.cell.clients,
    verdict: (a, b) => verdictOf.get(a.cell.verdict).rank - verdictOf.get(b.cell.verdict).rank || effect(a) - effect(b),
  }[order];
  return all.sort((a, b) => by(a, b) || a.cell.place - b.cell.place);
}

function grouped(all, metric) {
  const list = [];
  const complete = shown.length === cells.length;
  for (const candidate of candidates) {
    const own = all.filter((row) => row.cell.candidate === candidate.id);
    if (several && own.length) list.push({ kind: 'head', text: candidate.name, strong: true });
    for (const group of groups) {
      const members = own.filter((row) => row.cell.group === group.key);
      if (members.length) list.push({ kind: 'head', text: group.heading }, ...members, ...mean(group.key));
    }
    if (complete && own.length) {
      const all = mean(null);
      if (all.length) list.push({ kind: 'head', text: 'All cells' }, ...all);
    }
    // A mean stands for all cells of its group, so it is shown with all of them alone.
    function mean(group) {
      const found = means.find((one) => one.candidate === candidate.id && one.group === group);
      const whole = complete && found?.ratios[metric];
      return whole ? [{ kind: 'mean', text: found.words, value: whole }] : [];
    }
  }
  return list;
}

const narrow = () => element.clientWidth < 720;

function layout() {
  const [height, head] = narrow() ? [46, 26] : [30, 27];
  let top = 0;
  for (const row of rows) {
    row.height = row.kind === 'head' ? head : height;
    row.top = top;
    top += row.height;
  }
  const width = element.clientWidth;
  const names = narrow() ? 0 : Math.round(Math.min(300, Math.max(190, width * 0.25)));
  return { total: Math.max(top, 30), left: narrow() ? 10 : names + 118, right: narrow() ? 10 : 188, names };
}

/** Marks whose shape says the verdict: down for worse, up for better, a dot for equal, a ring for open, a cross. */
function mark(x, y, kind, paint) {
  const style = { fill: paint, stroke: paint, lineWidth: 1.5 };
  if (kind === 'worse') return { type: 'polygon', shape: { points: [[x - 6, y - 5], [x + 6, y - 5], [x, y + 6]] }, style };
  if (kind === 'better') return { type: 'polygon', shape: { points: [[x - 6, y + 5], [x + 6, y + 5], [x, y - 6]] }, style };
  if (kind === 'mean') {
    return { type: 'polygon', shape: { points: [[x - 7, y], [x, y - 5], [x + 7, y], [x, y + 5]] }, style };
  }
  if (kind === 'placebo') {
    const shape = { points: [[x - 4, y], [x, y - 4], [x + 4, y], [x, y + 4]] };
    return { type: 'polygon', shape, style: { ...style, fill: colour('bg'), lineWidth: 1.2 } };
  }
  if (kind === 'void') {
    const line = (sign) => ({
      type: 'line', shape: { x1: x - 4, y1: y - 4 * sign, x2: x + 4, y2: y + 4 * sign }, style: { ...style, lineWidth: 2.5 },
    });
    return { type: 'group', children: [line(1), line(-1)] };
  }
  return { type: 'circle', shape: { cx: x, cy: y, r: 4.5 }, style: { ...style, fill: kind === 'open' ? colour('bg') : paint, lineWidth: 2 } };
}

const line = (x1, y1, x2, y2, stroke, width = 2, dash) => ({
  type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke, lineWidth: width, lineDash: dash },
});
const words = (x, y, content, more) => ({
  type: 'text', x, y, style: { text: content, fill: colour('fg'), font: `12.5px ${FONT}`, verticalAlign: 'middle', ...more },
});
const band = (x1, x2, y, height, fill) => ({ type: 'rect', shape: { x: x1, y, width: Math.max(x2 - x1, 1), height }, style: { fill } });

/** An interval that may leave the axis: arrows say so. Other ends have caps, but for those of the placebo. */
function whiskers(value, y, place, limit, stroke, width = 2, caps = true) {
  const [low, high] = [value.low ?? value.ratio, value.high ?? value.ratio];
  const [from, to] = [place(low), place(high)];
  const end = (x, cut, towards) =>
    cut
      ? { type: 'polyline', shape: { points: [[x - 5 * towards, y - 5], [x + 2 * towards, y], [x - 5 * towards, y + 5]] }, style: { stroke, lineWidth: width, fill: 'none' } }
      : caps && line(x, y - 5, x, y + 5, stroke, width);
  return [line(from, y, to, y, stroke, width), end(from, low < 1 - limit, -1), end(to, high > 1 + limit, 1)].filter(Boolean);
}

/** A metric that is not judged has no verdict: its colour only says whether the interval leaves out equal. */
function classOf(row, metric) {
  if (metric === 0 || row.cell.verdict === 'unfit') return verdictOf.get(row.cell.verdict).class;
  if (row.value.verdict) return verdictOf.get(row.value.verdict).class;
  return row.value.low > 1 || row.value.high < 1 ? 'same' : 'open';
}

function render(row, frame) {
  const { top, left, right, width, names, limit, metric } = frame;
  const y = top + (narrow() && row.kind !== 'head' ? 32 : row.height / 2);
  const label = narrow() ? top + 11 : y;
  const place = (ratio) => left + (Math.min(Math.max((ratio - 1) / limit, -1), 1) + 1) / 2 * (right - left);
  const room = width - 8 - (narrow() ? 160 : 0);
  if (row.kind === 'head') {
    return [
      words(0, y + 3, row.text, { fill: colour(row.strong ? 'fg' : 'muted'), font: `600 ${row.strong ? 14 : 12.5}px ${FONT}`, width, overflow: 'truncate' }),
      line(0, top + row.height - 1, width, top + row.height - 1, colour('line'), 1),
    ];
  }
  const figures = row.value ? changeInterval(row.value) : (metric === 0 && row.cell?.withheld) || 'unknown';
  const value = words(width, label, figures, { align: 'right', font: `12px ${FONT}` });
  if (row.kind === 'mean') {
    const list = [words(0, label, row.text, { font: `italic 12.5px ${FONT}`, width: narrow() ? room : left - 12, overflow: 'truncate' }), value];
    return [...list, ...whiskers(row.value, y, place, limit, colour('same')), mark(place(row.value.ratio), y, 'mean', colour('same'))];
  }
  const { cell } = row;
  const verdict = verdictOf.get(cell.verdict);
  const on = several && document.getElementById('order').value !== 'group' ? ` on ${cell.candidateName}` : '';
  const clients = narrow() ? cell.clients : cell.clientsText;
  const name = `${cell.name}${narrow() && !severalClients(cell) ? '' : `, ${clients}`}${on}`;
  const list = [{ type: 'rect', shape: { x: 0, y: top, width, height: row.height }, style: { fill: 'transparent' } }];
  const sign = `${verdict.sign}${cell.marks}`;
  if (narrow()) {
    list.push(words(0, label, `${sign} ${name}`, { font: `600 12.5px ${FONT}`, fill: colour(verdict.class), width: room, overflow: 'truncate' }));
  } else {
    list.push(words(0, label, name, { font: `600 12.5px ${FONT}`, width: names - 8, overflow: 'truncate' }));
    list.push(words(names, label, cell.withdrawn ? '× withdrawn' : `${sign} ${verdict.word}`, {
      font: `600 12px ${FONT}`, fill: colour(cell.withdrawn ? 'worse' : verdict.class),
    }));
  }
  if (cell.withdrawn) list.push(line(0, label, narrow() ? room : names - 12, label, colour('worse'), 1.5));
  list.push(value, line(0, top + row.height - 1, width, top + row.height - 1, colour('line'), 0.5));
  if (!row.value) return list;
  const parts = [];
  if (metric < compared) parts.push(band(place(1 / (1 + cell.delta)), place(1 + cell.delta), top + (narrow() ? 20 : 0), row.height - (narrow() ? 20 : 0) - 1, colour('band')));
  const all = frame.placebo;
  if (all?.low != null) parts.push(band(place(all.low), place(all.high), top + (narrow() ? 20 : 0), row.height - (narrow() ? 20 : 0) - 1, colour('placebo')));
  parts.push(line(place(1), top + (narrow() ? 20 : 0), place(1), top + row.height - 1, colour('fg'), 1));
  const nothing = placeboOf(cell, metric);
  if (nothing) {
    const low = y + 8;
    if (nothing.low != null) parts.push(...whiskers(nothing, low, place, limit, colour('muted'), 1, false));
    parts.push(mark(place(nothing.ratio), low, 'placebo', colour('muted')));
  }
  const kind = classOf(row, metric);
  const at = nothing ? y - 4 : y;
  parts.push(...whiskers(row.value, at, place, limit, colour(kind)), mark(place(row.value.ratio), at, kind, colour(kind)));
  if (cell.withdrawn) for (const part of parts) part.style && (part.style.opacity = 0.35);
  return [...list, ...parts];
}

function paint() {
  const metric = metricOf();
  rows = rowsOf(document.getElementById('order').value, metric);
  const { total, left, right, names } = layout();
  const limit = limitOf(
    rows.flatMap((row) => (row.value ? [row.value.low ?? row.value.ratio, row.value.high ?? row.value.ratio] : [])),
    metric < compared ? 2 * Math.max(...cells.map((cell) => cell.delta)) : 0.02,
  );
  element.style.height = `${total + 52}px`;
  const ratio = (position) => ({
    ...axis(), type: 'value', position, min: -limit, max: limit, interval: limit / 2,
    axisLabel: text({ formatter: (value) => (value === 0 ? 'equal' : change(1 + value, tickDigits(limit))) }),
  });
  const width = element.clientWidth;
  const frame = { left, right: width - right, width, names, limit, metric, placebo: placebo[metric] };
  const described = `Forest plot of ${metrics[metric].name}: ${shown.length} cells against ${base}; the table of values has the same figures`;
  element.dataset.title = `${metrics[metric].name} relative to ${base}`;
  chart = draw(element, described, {
    grid: { left, right, top: 26, height: total },
    xAxis: [ratio('top'), { ...ratio('bottom'), splitLine: { show: false } }],
    yAxis: { type: 'value', inverse: true, min: 0, max: total, show: false },
    tooltip: tooltip({ trigger: 'item', formatter: ({ dataIndex }) => tipOf(rows[dataIndex], metric) }),
    series: [
      // The second axis needs a series of its own.
      { type: 'custom', xAxisIndex: 1, data: [[0, 0]], renderItem: () => null, silent: true },
      {
        type: 'custom',
        cursor: 'pointer',
        clip: false,
        data: rows.map((row) => [0, row.top]),
        encode: { x: 0, y: 1 },
        renderItem: (params) => {
          const row = rows[params.dataIndex];
          return { type: 'group', emphasisDisabled: true, children: render(row, { ...frame, top: 26 + row.top }) };
        },
      },
    ],
  });
  chart.off('click');
  chart.on('click', ({ dataIndex, seriesIndex }) => {
    const cell = seriesIndex === 1 && rows[dataIndex]?.cell;
    if (cell) go(cell);
  });
  const [less, more] = document.querySelectorAll('#forest-ends span');
  const ways = { higher: ['← slower', 'faster →'], lower: ['← less, better', 'more, worse →'] }[metrics[metric].better] ?? ['← less', 'more →'];
  [less.textContent, more.textContent] = metric === 1 ? ['← less CPU', 'more CPU →'] : ways;
  document.getElementById('forest-ends').style.padding = `0 ${right}px 0 ${left}px`;
  const judged = rows.some((row) => row.value?.verdict) ? '' : ' It is not judged. A filled dot means that the interval excludes “equal”.';
  document.getElementById('forest-note').textContent =
    `${metrics[metric].name}${metrics[metric].meaning ? ` (${metrics[metric].meaning})` : ''}. The axis goes from −${share(limit)} to +${share(limit)} and does not start at 0. An interval that ends outside of it has an arrow.${judged} Click a row to open its card.`;
}

function tipOf(row, metric) {
  if (row?.kind === 'cell') {
    const nothing = placeboOf(row.cell, metric);
    const cost = metric >= compared && row.value ? `<div>${metrics[metric].name}: ${changeInterval(row.value, 2)}</div>` : '';
    return cellTip(row.cell) + cost + (nothing ? `<div>placebo in this cell: ${changeInterval(nothing, 2)}</div>` : '');
  }
  return row?.kind === 'mean' ? `${row.text}: ${changeInterval(row.value, 2)}` : '';
}

export function forest() {
  options();
  // Hidden places have no width.
  document.documentElement.classList.add('scripts');
  whenShown((cells) => {
    shown = cells;
    paint();
  });
  for (const id of ['metric', 'order']) document.getElementById(id).addEventListener('change', paint);
  element.addEventListener('resized', paint);
}
