// Relative throughput as published comparisons show it: bars by group, lines over clients, lines over candidates.

import { base, baseLabel, candidates, cells, groups, labelOf, severalClients, worker } from './page.js';
import { axis, colour, draw, lazily, legend, look, text, tooltip } from './chart.js';
import { axisWords, changeInterval, escape, limitOf, number, ratioInterval, rows, tickDigits } from './format.js';
import { go } from './cards.js';

const THROUGHPUT = 0;
const throughput = (cell) => cell.values[THROUGHPUT];
const isVoid = (cell) => Boolean(cell.withdrawn) || cell.verdict === 'unfit';
const nameIn = (cell) => `${isVoid(cell) ? '× ' : ''}${severalClients(cell) ? `${cell.name}, ${cell.clients}` : cell.name}`;

/** Bars start at equal: their length is the change. Candidates differ by colour and by how a bar is filled. */
const sideColour = (nth) => colour(`s${(nth + 1) % 8}`);
const FILLS = [{}, { hollow: true }, { hollow: true, dash: [4, 3] }, { hollow: true, dash: [1, 2] }];

export function bars() {
  const place = document.getElementById('bars');
  const ends = cells.map(throughput).flatMap((value) => (value ? [value.low ?? value.ratio, value.high ?? value.ratio] : []));
  const limit = limitOf(ends, 0.02);
  const withheld = cells.find((cell) => cell.withheld)?.withheld;
  document.getElementById('bars-note').textContent = withheld && !cells.some(throughput) ? withheld :
    `Bars start at 1.00 (equal). ${axisWords(limit, ends)} Thin lines are 95 % intervals.${cells.some(isVoid) ? ' A pale bar with × before its name is unfit or withdrawn: do not use it.' : ''}`;
  for (const group of groups) {
    const own = cells.filter((cell) => cell.group === group.key && throughput(cell));
    const names = [...new Set(own.map(nameIn))];
    if (!own.length) continue;
    const figure = document.createElement('figure');
    figure.className = 'plot';
    figure.style.flex = `${names.length} 1 ${Math.max(300, names.length * 44 + 90)}px`;
    const id = `bars-${group.key}`;
    figure.innerHTML = `<p class="metric">${escape(group.heading)}</p><div class="scroll"><div class="chart" id="${id}"></div></div>
      <figcaption class="legend"><button type="button" data-save="${id}">save as image</button></figcaption>`;
    const chart = figure.querySelector('.chart');
    chart.style.cssText = `height:300px;min-width:${names.length * 26 * Math.min(candidates.length, 3) + 60}px`;
    chart.dataset.title = `Relative throughput: ${group.heading}`;
    place.append(figure);
    lazily(chart, () => drawGroup(chart, group, own, names, limit));
  }
}

function drawGroup(element, group, own, names, limit) {
  const step = () => (element.clientWidth - 60) / names.length;
  const clip = (ratio) => Math.min(Math.max(ratio - 1, -limit), limit);
  const barsOf = (nth, list) => ({
    encode: { x: 0, y: 1 },
    data: list.map((cell) => ({ value: [names.indexOf(nameIn(cell)), clip(throughput(cell).ratio)], cell })),
    renderItem(params, api) {
      const cell = list[params.dataIndex];
      const value = throughput(cell);
      const [centre, zero] = api.coord([api.value(0), 0]);
      const wide = Math.min(api.size([1, 0])[0] * 0.72, 70 * candidates.length) / candidates.length;
      const x = centre + (nth - candidates.length / 2) * wide;
      const y = (ratio) => api.coord([0, clip(ratio)])[1];
      const paint = sideColour(nth);
      const fill = FILLS[nth % FILLS.length];
      const [end, middle] = [y(value.ratio), x + wide / 2];
      const children = [{
        type: 'rect',
        shape: { x: x + 1, y: Math.min(zero, end), width: wide - 2, height: Math.max(Math.abs(end - zero), 1) },
        style: { fill: fill.hollow ? colour('card') : paint, stroke: paint, lineWidth: 1.5, lineDash: fill.dash, opacity: isVoid(cell) ? 0.3 : 1 },
      }];
      if (value.low != null) {
        const stroke = { style: { stroke: colour('fg'), lineWidth: 1.2 } };
        children.push({ type: 'line', shape: { x1: middle, x2: middle, y1: y(value.low), y2: y(value.high) }, ...stroke });
        for (const ratio of [value.low, value.high]) children.push({ type: 'line', shape: { x1: middle - 4, x2: middle + 4, y1: y(ratio), y2: y(ratio) }, ...stroke });
      }
      if (wide >= 34) {
        const top = y(Math.max(value.high ?? value.ratio, value.ratio, 1));
        children.push({ type: 'text', x: middle, y: top - 5, style: { text: value.ratio.toFixed(wide >= 44 ? 3 : 2), fill: colour('fg'), align: 'center', verticalAlign: 'bottom', fontSize: 11 } });
      }
      return { type: 'group', emphasisDisabled: true, children };
    },
  });
  const series = candidates.map((candidate, nth) => ({
    ...barsOf(nth, own.filter((cell) => cell.candidate === candidate.id)),
    type: 'custom',
    name: labelOf(candidate.id),
    itemStyle: { color: sideColour(nth) },
  }));
  const swatch = (candidate, nth) => {
    const [paint, fill] = [sideColour(nth), FILLS[nth % FILLS.length]];
    return {
      name: labelOf(candidate.id),
      icon: 'rect',
      itemStyle: { color: fill.hollow ? colour('card') : paint, borderColor: paint, borderWidth: 1.5, borderType: fill.dash ?? 'solid' },
    };
  };
  const chart = draw(element, `Relative throughput of ${group.heading}: ${names.length} workloads`, {
    grid: { left: 44, right: 8, top: candidates.length > 1 ? 40 : 16, bottom: step() < 110 ? 126 : 30 },
    legend: legend({ show: candidates.length > 1, data: candidates.map(swatch) }),
    xAxis: {
      ...axis(), type: 'category', data: names, splitLine: { show: false },
      axisLabel: text({ interval: 0, rotate: step() < 110 ? 42 : 0, width: 160, overflow: 'truncate', color: colour('fg') }),
      axisLine: { show: true, onZero: true, lineStyle: { color: colour('fg') } },
    },
    yAxis: { ...axis(), type: 'value', min: -limit, max: limit, interval: limit / 2, axisLabel: text({ formatter: (value) => (1 + value).toFixed(2 + tickDigits(limit)) }) },
    tooltip: tooltip({
      trigger: 'item',
      formatter: ({ data: { cell } }) => {
        const value = throughput(cell);
        return `<b>${escape(`${cell.name}, ${cell.clientsText} on ${cell.candidateName}`)}</b>${rows([
          ['relative throughput', ratioInterval(value)],
          ['change', changeInterval(value, 2)],
          ['base → candidate', `${number(value.base)} → ${number(value.candidate)} ops/s`],
        ])}`;
      },
    }),
    series,
  });
  chart.off('click');
  chart.on('click', ({ data }) => {
    if (data?.cell) go(data.cell);
  });
}

/** Throughput over clients: of one workload in ops/s from 0, or of all as ratios. */
export function overClients() {
  const element = document.getElementById('clients');
  if (!element) return;
  const select = document.getElementById('clients-of');
  const workloads = [...new Set(cells.filter(severalClients).map((cell) => cell.name))];
  select.append(new Option('all, relative to the base', ''), ...workloads.map((name) => new Option(name, name)));
  const changed = cells.find((cell) => severalClients(cell) && ['regression', 'improvement'].includes(cell.verdict));
  select.value = changed?.name ?? workloads[0] ?? '';
  const paint = () => (select.value ? absolute(element, select.value) : relative(element, workloads));
  lazily(element, paint);
  select.addEventListener('change', paint);
}

function note(element, words) {
  element.parentElement.querySelector('.note').textContent = words;
}

const lines = (element, label, more) =>
  draw(element, label, {
    grid: { left: 62, right: 20, top: 52, bottom: 44 },
    legend: legend(),
    tooltip: tooltip({ trigger: 'axis', formatter: (points) => pointsTip(points) }),
    ...more,
  });

function pointsTip(points) {
  const list = points.filter((point) => point.data?.words);
  const [first] = points;
  return `<b>${escape(first.axisValueLabel)}</b>${rows(list.map((point) => [point.seriesName, point.data.words]))}`;
}

function absolute(element, name) {
  const own = cells.filter((cell) => cell.name === name && throughput(cell));
  const clients = [...new Set(own.map((cell) => cell.clients))].sort((a, b) => a - b);
  const at = (of) => clients.map((count) => of(own.filter((cell) => cell.clients === count)));
  const point = (value, words) => (value == null ? null : { value, words: words ?? `${number(value)} ops/s` });
  const baseLine = { name: baseLabel, data: at((list) => point(list[0] && throughput(list[0]).base)) };
  const others = candidates.map((candidate) => ({
    name: labelOf(candidate.id),
    data: at((list) => {
      const cell = list.find((one) => one.candidate === candidate.id);
      return cell && throughput(cell) ? point(throughput(cell).candidate, `${number(throughput(cell).candidate)} ops/s, ${changeInterval(throughput(cell))}`) : null;
    }),
  }));
  element.dataset.title = `${name}: throughput over ${worker}s`;
  lines(element, `Throughput of ${name} over ${worker}s, base and candidates`, {
    xAxis: { ...axis(), type: 'category', data: clients.map(String), name: `${worker}s`, nameLocation: 'middle', nameGap: 26 },
    yAxis: { ...axis(), type: 'value', min: 0, name: 'ops/s', axisLabel: text({ formatter: number }) },
    series: [baseLine, ...others].map((one, nth) => ({ type: 'line', ...one, ...look(nth), connectNulls: true })),
  });
  note(element, 'The throughput axis starts at 0.');
}

function relative(element, workloads) {
  const own = cells.filter((cell) => workloads.includes(cell.name) && throughput(cell));
  const clients = [...new Set(own.map((cell) => cell.clients))].sort((a, b) => a - b);
  const ratios = own.map((cell) => throughput(cell).ratio);
  const limit = limitOf(ratios, 0.02);
  const series = candidates.flatMap((candidate, side) =>
    workloads.map((name, nth) => ({
      name: candidates.length > 1 ? `${name} on ${labelOf(candidate.id)}` : name,
      data: clients.map((count) => ratioPoint(own.find((cell) => cell.name === name && cell.clients === count && cell.candidate === candidate.id), side * workloads.length + nth)),
    })),
  );
  element.dataset.title = `Relative throughput over ${worker}s`;
  lines(element, `Relative throughput over ${worker}s, a line for each step or workload`, {
    xAxis: { ...axis(), type: 'category', data: clients.map(String), name: `${worker}s`, nameLocation: 'middle', nameGap: 26 },
    yAxis: { ...axis(), type: 'value', min: 1 - limit, max: 1 + limit, interval: limit / 2, axisLabel: text({ formatter: (value) => value.toFixed(2 + tickDigits(limit)) }) },
    series: series.map((one, nth) => ({ type: 'line', ...one, ...look(nth), connectNulls: true, markLine: nth ? undefined : equal() })),
  });
  note(element, `${POINTS} ${axisWords(limit, ratios)}`);
}

const equal = () => ({
  silent: true, symbol: 'none', label: { show: false }, data: [{ yAxis: 1 }], lineStyle: { color: colour('fg'), width: 1, type: 'solid' },
});

const POINTS = 'Hollow points are inconclusive. Crosses are unfit or withdrawn.';

/** A point of a line; its shape says where there is no answer. */
function ratioPoint(cell, nth) {
  const value = cell && throughput(cell);
  if (!value) return null;
  const stroke = colour(`s${nth % 8}`);
  const hollow = { itemStyle: { color: colour('bg'), borderColor: stroke, borderWidth: 2 } };
  const cross = { symbol: 'path://M0 1L1 0L5 4L9 0L10 1L6 5L10 9L9 10L5 6L1 10L0 9L4 5Z', symbolSize: 10 };
  const shape = isVoid(cell) ? cross : cell.verdict === 'inconclusive' ? hollow : {};
  const said = isVoid(cell) ? ', do not use' : cell.verdict === 'inconclusive' ? ', inconclusive' : '';
  return {
    value: Math.min(Math.max(value.ratio, 0), 2),
    words: `${value.ratio.toFixed(3)} (${changeInterval(value)})${said}`,
    ...shape,
  };
}

/** A line for each cell over the candidates, the base first. Of many lines those that changed are shown. */
export function overCandidates() {
  const element = document.getElementById('candidates');
  if (!element) return;
  lazily(element, () => {
    const places = [...new Map(cells.map((cell) => [cell.cell, cell])).values()];
    const of = (place, candidate) => cells.find((cell) => cell.cell === place.cell && cell.candidate === candidate.id);
    const ratios = cells.map((cell) => throughput(cell)?.ratio);
    const limit = limitOf(ratios, 0.02);
    const label = (place) => `${place.name}, ${place.clientsText}`;
    const few = places.length <= 12;
    const changed = (place) => cells.some((cell) => cell.cell === place.cell && ['regression', 'improvement'].includes(cell.verdict));
    element.dataset.title = `Throughput relative to ${base} over candidates`;
    lines(element, 'Relative throughput over candidates, a line for each cell', {
      legend: legend({ selected: Object.fromEntries(places.map((place) => [label(place), few || changed(place)])) }),
      xAxis: { ...axis(), type: 'category', data: [baseLabel, ...candidates.map((one) => labelOf(one.id))], axisLabel: text({ interval: 0, color: colour('fg'), width: (element.clientWidth - 90) / (candidates.length + 1), overflow: 'truncate' }) },
      yAxis: { ...axis(), type: 'value', min: 1 - limit, max: 1 + limit, interval: limit / 2, axisLabel: text({ formatter: (value) => value.toFixed(2 + tickDigits(limit)) }) },
      series: places.map((place, nth) => ({
        type: 'line',
        name: label(place),
        data: [{ value: 1, words: '1, the base' }, ...candidates.map((candidate) => ratioPoint(of(place, candidate), nth))],
        ...look(nth),
        markLine: nth ? undefined : equal(),
      })),
    });
    note(element, `${few ? '' : 'The chart first shows only cells that changed. Click a name in the legend to show others. '}${POINTS} ${axisWords(limit, ratios)}`);
  });
}
