// The card of each cell: latency curves, throughput by block, costs; rounds under the pointer; opening from elsewhere.

import { baseLabel, cellOf, labelOf, metrics } from './page.js';
import { axis, colour, draw, lazily, legend, look, text, tooltip, zoom } from './chart.js';
import { change, changeInterval, escape, exact, number, rows } from './format.js';
import { reveal, whenShown } from './filter.js';
import { hideTip, showTip } from './floating.js';

/** Opens the card of that name, as a link to it should. */
export function open(id) {
  const details = document.getElementById(id)?.querySelector('details');
  if (details) details.open = true;
}

/** Goes to a card, also where charts that are drawn on the way move it. */
export function go(cell) {
  reveal(cell);
  open(cell.id);
  if (location.hash !== `#${cell.id}`) location.hash = cell.id;
  const article = document.getElementById(cell.id);
  let turns = 0;
  const settle = () => {
    article.scrollIntoView({ behavior: 'instant', block: 'start' });
    turns += 1;
    if (turns < 12) requestAnimationFrame(settle);
  };
  settle();
}

export function cards() {
  const articles = [...document.querySelectorAll('article[data-cell]')];
  whenShown((shown) => {
    const wanted = new Set(shown.map((cell) => cell.id));
    for (const article of articles) article.hidden = !wanted.has(article.dataset.cell);
  });
  const follow = () => {
    const cell = cellOf.get(decodeURIComponent(location.hash.slice(1)));
    if (cell) go(cell);
  };
  addEventListener('hashchange', follow);
  // A link to the place that is already in the address changes nothing there.
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href^="#cell-"]');
    if (link?.getAttribute('href') === location.hash) follow();
  });
  follow();
  const kinds = { latency, rates };
  for (const element of document.querySelectorAll('.chart[data-of]')) {
    const cell = cellOf.get(element.dataset.of);
    const paint = kinds[element.dataset.chart];
    element.dataset.title = `${cell.name}, ${cell.clientsText}: ${element.dataset.chart === 'rates' ? 'throughput of each block' : 'latency by percentile'}`;
    lazily(element, () => paint(element, cell));
  }
  for (const element of document.querySelectorAll('[data-costs]')) {
    lazily(element, () => costs(element, cellOf.get(element.dataset.costs)));
  }
  strips();
}

const note = (element, words) => {
  element.parentElement.querySelector('.note').textContent = words;
};

/** Percentiles on an axis that gives the slow end its room: 50, 90, 99, 99.9, each as far from the one before. */
function latency(element, cell) {
  const [percentiles, ofBase, ofCandidate] = cell.latency;
  const place = (percentile) => -Math.log10(Math.max(1 - percentile / 100, 1e-7));
  const last = place(percentiles.at(-1));
  const line = (name, values, nth) => ({
    type: 'line', name, data: values.map((value, at) => [place(percentiles[at]), value, percentiles[at]]),
    ...look(nth), showSymbol: percentiles.length < 30, symbolSize: 5,
  });
  draw(element, `Latency by percentile of ${cell.name}, ${cell.clientsText}: base and candidate`, {
    grid: { left: 52, right: 14, top: 46, bottom: 24 },
    legend: legend(),
    xAxis: {
      ...axis(), type: 'value', min: 0, max: Math.ceil(last * 4) / 4, interval: 1,
      axisLabel: text({ formatter: (value) => (value === 0 ? '0 %' : `${Number((100 * (1 - 10 ** -value)).toFixed(5))} %`) }),
    },
    yAxis: { ...axis(), type: 'log', logBase: 2, name: 'µs', nameGap: 6, axisLabel: text({ formatter: number }) },
    tooltip: tooltip({
      trigger: 'axis',
      formatter: (points) => `<b>${exact(points[0].value[2])} % are faster than</b>${rows([
        ...points.map((point) => [point.seriesName, `${number(point.value[1])} µs`]),
        ...(points.length === 2 ? [['change', change(points[1].value[1] / points[0].value[1])]] : []),
      ])}`,
    }),
    series: [line(baseLabel, ofBase, 0), line(labelOf(cell.candidate), ofCandidate, 1)],
  });
  note(element, 'Both axes are logarithmic. The latency axis does not start at 0.');
}

/** The smallest round number that is not below. */
function round(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return power * [1, 2, 2.5, 5, 10].find((digit) => digit * power >= value * 0.999);
}

function rates(element, cell) {
  const values = cell.rates.flatMap(([, b, c]) => [b, c]).filter((value) => value != null);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  // Half of the range below, or 0 if that is near: the spread between blocks must be seen.
  const wanted = low - Math.max(high - low, 0.01 * high) / 2;
  const from = wanted < 0.3 * low ? 0 : wanted;
  const step = round((high - from) / 4);
  const least = Math.floor(from / step) * step;
  const line = (name, place, nth) => ({
    type: 'line', name, data: cell.rates.map((rate) => [rate[0] + 1, rate[place]]), ...look(nth), symbolSize: 6,
  });
  draw(element, `Throughput of each block of ${cell.name}, ${cell.clientsText}: base and candidate`, {
    grid: { left: 58, right: 14, top: 46, bottom: cell.rates.length > 24 ? 46 : 24 },
    legend: legend(),
    dataZoom: cell.rates.length > 24 ? zoom() : undefined,
    xAxis: { ...axis(), type: 'value', min: 'dataMin', max: 'dataMax', minInterval: 1, splitLine: { show: false }, axisLabel: text({ formatter: (value) => (Number.isInteger(value) ? String(value) : '') }) },
    yAxis: { ...axis(), type: 'value', min: least, max: Math.ceil(high / step) * step, interval: step, name: 'ops/s', nameGap: 6, axisLabel: text({ formatter: number }) },
    tooltip: tooltip({
      trigger: 'axis',
      formatter: (points) => `<b>block ${points[0].value[0]}</b>${rows([
        ...points.map((point) => [point.seriesName, `${number(point.value[1])} ops/s`]),
        ...(points.length === 2 && points[0].value[1] ? [['change', change(points[1].value[1] / points[0].value[1])]] : []),
      ])}`,
    }),
    series: [line(baseLabel, 1, 0), line(labelOf(cell.candidate), 2, 1)],
  });
  note(element, least > 0 ? `The axis starts at ${number(least)}, not at 0.` : 'The axis starts at 0.');
}

/** What an operation cost on both sides; what moved comes first. */
function costs(element, cell) {
  const list = [...cell.costs].sort((a, b) => (a.moved ?? 1e9) - (b.moved ?? 1e9) || a.metric - b.metric);
  const difference = ({ estimate, low, high }) => {
    const sign = (value) => (value > 0 ? `+${number(value)}` : number(value));
    return low == null ? sign(estimate) : `${sign(estimate)} [${sign(low)}, ${sign(high)}]`;
  };
  const row = (cost) => {
    const metric = metrics[cost.metric];
    const fields = [
      number(cost.base), number(cost.candidate), difference(cost.difference), cost.ratio ? changeInterval(cost.ratio) : '',
    ];
    const moved = cost.moved == null ? '' : '<b title="moved">●</b> ';
    return `<tr${moved ? ' class="has-moved"' : ''}><th scope="row" title="${escape(metric.meaning)}">${moved}${escape(metric.name)} <small>${escape(metric.unit)}</small></th>${fields.map((field) => `<td>${escape(field)}</td>`).join('')}</tr>`;
  };
  const table = document.createElement('div');
  table.className = 'scroll';
  table.innerHTML = `<table class="costs"><thead><tr>${['cost', 'base', 'candidate', 'difference [95 %]', 'change [95 %]'].map((head) => `<th scope="col">${head}</th>`).join('')}</tr></thead><tbody>${list.map(row).join('')}</tbody></table>`;
  table.tabIndex = 0;
  table.setAttribute('role', 'region');
  table.setAttribute('aria-label', `costs of ${cell.name}, ${cell.clientsText}`);
  element.append(table);
  const foot = document.createElement('p');
  foot.className = 'legend';
  const moved = list.some((cost) => cost.moved != null) ? '● moved by more than chance and by more than the placebo moves. ' : '';
  foot.textContent = `${moved}Costs are from all blocks, also those before a detection. If a cell has fresh blocks, the judged CPU is from these only.`;
  element.append(foot);
}

/** Every round under the pointer: its block and what it says. */
function strips() {
  const dot = document.createElement('div');
  dot.className = 'round-dot';
  dot.hidden = true;
  const hide = () => {
    dot.hidden = true;
    hideTip();
  };
  document.getElementById('cards').addEventListener('pointermove', (event) => {
    const strip = event.target.closest('svg.rounds');
    const found = strip && roundAt(strip, event);
    if (!found) return dot.hidden || hide();
    showTip(found.tip, event.clientX, event.clientY);
    strip.parentElement.append(dot);
    dot.hidden = found.y == null;
    const [box, around] = [strip.getBoundingClientRect(), strip.parentElement.getBoundingClientRect()];
    dot.style.left = `${box.left - around.left + found.x * box.width}px`;
    dot.style.top = `${box.top - around.top + (found.y ?? 0) * box.height}px`;
  });
  document.getElementById('cards').addEventListener('pointerleave', hide);
}

function roundAt(strip, event) {
  const cell = cellOf.get(strip.closest('article').dataset.cell);
  const place = strip.closest('[data-metric]').dataset.metric === metrics[0].key ? 0 : 1;
  const rounds = cell.rounds[place];
  if (!rounds?.blocks.length) return null;
  const box = strip.getBoundingClientRect();
  const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.999999);
  const nth = Math.floor(share * rounds.blocks.length);
  const [block, value, part, dots] = rounds.blocks[nth];
  if (!dots.length) return null;
  const column = Math.floor((share * rounds.blocks.length - nth) * dots.length);
  const said = (hundredths) => (hundredths == null ? 'left out' : change(1 + hundredths / 1e4, 2));
  const limit = Number(strip.dataset.limit);
  const y = dots[column] == null ? null : 0.5 - Math.min(Math.max(dots[column] / 1e4 / limit, -1), 1) / 2;
  const name = rounds.fold > 1 ? `rounds ${column * rounds.fold + 1} to ${(column + 1) * rounds.fold}` : `round ${column + 1}`;
  return {
    x: (nth + (column + 0.5) / dots.length) / rounds.blocks.length,
    y,
    tip: `<b>${escape(`block ${block + 1}${part ? ` ${part}` : ''}`)}</b>${rows([[name, said(dots[column])], ['the block', value == null ? 'unknown' : said(value)]])}`,
  };
}
