// Absolute figures over numbers of clients: a line for each server or machine, with its intervals.

import { axis, draw, lazily, legend, look, text, tooltip } from './chart.js';
import { changeInterval, escape, exact, number, ratioInterval, rows } from './format.js';

/** Figures by their place in a point: name, unit, and by how much what the page has is more than that. */
const FIGURES = [
  ['throughput', 'ops/s', 1],
  ['latency, average', 'ms', 1000],
  ['latency, median', 'ms', 1000],
  ['latency, 95th percentile', 'ms', 1000],
  ['latency, 99th percentile', 'ms', 1000],
];

export function grids(list) {
  for (const element of document.querySelectorAll('[data-grid]')) {
    const grid = list[element.dataset.grid];
    const select = document.querySelector(`[data-grid-figure="${element.dataset.grid}"]`);
    FIGURES.forEach(([name], place) => {
      if (grid.columns.some((column) => column.points.some((point) => point?.[0][place]))) select.append(new Option(name, place));
    });
    const paint = () => lines(element, grid, Number(select.value));
    select.addEventListener('change', paint);
    lazily(element, paint);
  }
}

function lines(element, grid, place) {
  const [name, unit, scale] = FIGURES[place];
  const most = Math.max(1, ...grid.clients);
  const series = grid.columns.map((column, nth) => ({
    type: 'line',
    name: column.name,
    ...look(nth),
    connectNulls: false,
    data: column.points.flatMap((point, row) => {
      const found = point?.[0][place];
      // A point of another placement is no part of the line, which has a gap on both sides of it.
      const gap = grid.apart.includes(grid.clients[row]) ? [{ value: [grid.clients[row], null], ends: [] }] : [];
      return found ? [...gap, { value: [grid.clients[row], found[0] / scale], ends: found, point }, ...gap] : [];
    }),
  }));
  element.dataset.title = `${grid.title}: ${name}`;
  draw(element, `${grid.title}: ${name} over ${grid.worker}s, ${series.length} lines`, {
    grid: { left: 62, right: 24, top: 52, bottom: 44 },
    legend: legend(),
    xAxis: { ...axis(), type: 'value', min: 0, max: most, name: `${grid.worker}s`, nameLocation: 'middle', nameGap: 26, splitLine: { show: false } },
    yAxis: { ...axis(), type: 'value', min: 0, name: `${name}, ${unit}`, nameTextStyle: text({ align: 'left' }), axisLabel: text({ formatter: number }) },
    tooltip: tooltip({ trigger: 'item', formatter: ({ seriesName, data }) => (data?.point ? pointTip(grid.worker, seriesName, data) : escape(seriesName)) }),
    series: [...series, ...series.map((line) => whiskers(line, scale))],
  });
  element.parentElement.querySelector('.note').textContent = 'Both axes start at 0. Whiskers are 95 % intervals; the chart cuts them at its edge. A point without a whisker has fewer than two blocks.';
}

/** Intervals at the points, hidden with their line: they have its name. */
function whiskers(line, scale) {
  return {
    type: 'custom',
    name: line.name,
    silent: true,
    clip: true,
    itemStyle: line.itemStyle,
    data: line.data.map(({ value }) => value),
    renderItem(params, api) {
      const { ends, value } = line.data[params.dataIndex];
      if (ends[1] == null) return null;
      const [[x, top], [, bottom]] = [api.coord([value[0], ends[2] / scale]), api.coord([value[0], ends[1] / scale])];
      const style = { stroke: line.itemStyle.color, lineWidth: 1.2 };
      const part = (x1, y1, x2, y2) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style });
      return { type: 'group', emphasisDisabled: true, children: [part(x, top, x, bottom), part(x - 3, top, x + 3, top), part(x - 3, bottom, x + 3, bottom)] };
    },
  };
}

function pointTip(worker, name, { value, point: [figures, relative] }) {
  const list = FIGURES.flatMap(([label, unit, scale], place) => {
    const found = figures[place];
    if (!found) return [];
    const [estimate, low, high] = found.map((one) => (one == null ? null : Number((one / scale).toPrecision(5))));
    return [[label, `${exact(estimate)} ${unit}`, low == null ? 'no interval' : `[${exact(low)}, ${exact(high)}]`]];
  });
  if (relative) {
    const ratio = { ratio: relative[0], low: relative[1], high: relative[2] };
    list.push(['relative to the first', ratioInterval(ratio), changeInterval(ratio, 2)]);
  }
  return `<b>${escape(name)}</b> ${value[0]} ${worker}${value[0] === 1 ? '' : 's'}${rows(list)}`;
}
