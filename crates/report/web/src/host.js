// The one-second series of the host and of each server, with what happened at a moment.

import { marks, nameOf, series } from './page.js';
import { axis, colour, connect, draw, lazily, legend, look, text, tooltip, zoom } from './chart.js';
import { escape, number, rows } from './format.js';

/** Columns that are read together, in this order; the rest follows, a chart for each unit. */
const FAMILIES = [
  ['CPU of the host, % of all cores', /^cpu_/],
  ['CPU of each server, % of one core', /^server_cpu/],
  ['Tasks that waited, % of the time', /^pressure_/],
  ['Context switches', /^context_switches/],
  ['Requests of the device', /^device_(reads|writes)$/],
  ['Bytes of the device', /^device_(read|write)_kb$/],
  ['Time of a request', /^device_.*_await$/],
  ['Device in use', /^device_utilisation/],
  ['Requests in flight', /^device_queue/],
  ['Size of a request', /^device_request_kb/],
  ['Memory of the host', /^(memory_available|page_cache|dirty)$/],
  ['Memory of each server, main process', /^server_rss/],
  ['Network, loopback included', /^network_/],
];
/** What happened at a moment, each kind with dashes of its own. */
const KINDS = [
  ['block', 'blocks', 'solid', 'fg'],
  ['checkpoint', 'checkpoints', [6, 4], 'worse'],
  ['autovacuum', 'autovacuum', [2, 3], 'better'],
  ['autoanalyze', 'autoanalyze', [1, 4], 'open'],
];
const TOGETHER = 'host';
let view = { start: 0, end: 100 };

export function host() {
  const place = document.getElementById('series');
  if (!place || !series) return;
  const left = new Set(series.columns);
  const families = FAMILIES.map(([title, pattern]) => [title, take(left, (column) => pattern.test(column.key))]);
  for (const unit of new Set([...left].map((column) => column.unit))) families.push([`other series, ${unit || 'numbers'}`, take(left, (column) => column.unit === unit)]);
  const span = series.at.at(-1) - series.at[0];
  document.getElementById('host-note').textContent =
    `From ${new Date(series.start).toISOString().slice(0, 19).replace('T', ' ')} UTC, ${(span / 60).toFixed(span < 600 ? 1 : 0)} minutes${series.fold > 1 ? `; each point is the mean of ${series.fold} samples` : ''}. All axes start at 0.`;
  // The title says what is measured; the legend need only say on which server.
  for (const [, columns] of families) {
    if (columns.every((column) => column.server != null)) for (const column of columns) column.name = nameOf.get(column.server);
  }
  families.filter(([, columns]) => columns.length).forEach(([title, columns], nth) => {
    const figure = document.createElement('figure');
    figure.className = 'plot';
    const id = `host-${nth}`;
    figure.innerHTML = `<p class="metric"></p><div class="chart" id="${id}" style="height:240px"></div>
      <figcaption class="legend"><button type="button" data-save="${id}">save as image</button></figcaption>`;
    figure.querySelector('.metric').textContent = title;
    place.append(figure);
    const chart = figure.querySelector('.chart');
    chart.dataset.title = title;
    lazily(chart, () => family(chart, title, columns));
  });
}

function take(set, wanted) {
  const list = [...set].filter(wanted);
  for (const one of list) set.delete(one);
  return list;
}

/** In a chart of several units none would be read right, so each has one. */
function family(element, title, columns) {
  const time = (seconds) => series.start + 1000 * seconds;
  const kinds = KINDS.filter(([kind]) => marks.some((mark) => mark.kind === kind));
  const others = [...new Set(marks.map((mark) => mark.kind))].filter((kind) => !KINDS.some(([known]) => known === kind));
  const shown = () => chart.getOption().legend[0].selected ?? {};
  const chart = draw(element, `${title}, ${columns.map((column) => column.name).join(', ')}, over time`, {
    grid: { left: 58, right: 12, top: 48, bottom: 52 },
    legend: legend(),
    xAxis: { ...axis(), type: 'time', splitLine: { show: false }, axisLabel: text({ hideOverlap: true, formatter: { hour: '{HH}:{mm}', minute: '{HH}:{mm}', second: '{HH}:{mm}:{ss}', millisecond: '{HH}:{mm}:{ss}' } }) },
    yAxis: { ...axis(), type: 'value', min: 0, name: columns[0].unit, nameGap: 8, axisLabel: text({ formatter: number }) },
    tooltip: tooltip({ trigger: 'axis', formatter: ([point]) => momentTip(point, columns, shown()) }),
    dataZoom: zoom(view),
    series: [
      ...columns.map((column, nth) => ({
        type: 'line',
        name: column.name,
        data: column.values.map((value, at) => [time(series.at[at]), value]),
        ...look(nth),
        lineStyle: { ...look(nth).lineStyle, width: 1.4 },
        showSymbol: false,
        sampling: 'lttb',
      })),
      ...[...kinds, ...others.map((kind) => [kind, kind, 'dotted', 'muted'])].map((kind) => lines(kind, time)),
    ],
  });
  chart.group = TOGETHER;
  connect(TOGETHER);
  chart.on('dataZoom', () => {
    const [{ start, end }] = chart.getOption().dataZoom;
    view = { start, end };
  });
}

function lines([kind, name, dash, paint], time) {
  return {
    type: 'line',
    name,
    data: [],
    symbol: 'none',
    itemStyle: { color: colour(paint) },
    lineStyle: { color: colour(paint), type: dash },
    markLine: {
      silent: true,
      symbol: 'none',
      label: { show: false },
      lineStyle: { color: colour(paint), type: dash, width: 1, opacity: 0.65 },
      data: marks.filter((mark) => mark.kind === kind).map((mark) => ({ xAxis: time(mark.at) })),
    },
  };
}

/** What all shown columns say at a moment: lines are drawn from fewer points than there are. */
function momentTip(point, columns, shown) {
  if (!point) return '';
  const seconds = (point.axisValue - series.start) / 1000;
  const at = nearest(seconds);
  const list = columns
    .filter((column) => shown[column.name] !== false)
    .map((column) => [column.name, `${number(column.values[at])} ${column.unit}`]);
  const beside = marks.filter((mark) => Math.abs(mark.at - seconds) <= 3).slice(0, 6);
  const happened = beside.map((mark) => `<div><b>${escape(mark.kind)}</b> ${escape(mark.server == null ? '' : nameOf.get(mark.server) ?? '')} ${escape(mark.text)}</div>`);
  const moment = new Date(series.start + 1000 * series.at[at]).toISOString().slice(11, 19);
  return `<b>${moment} UTC</b>${rows(list)}${happened.join('')}`;
}

function nearest(seconds) {
  let [low, high] = [0, series.at.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (series.at[middle] <= seconds) low = middle;
    else high = middle;
  }
  return seconds - series.at[low] <= series.at[high] - seconds ? low : high;
}
