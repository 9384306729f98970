// Growth over clients: lines of workloads on one server, or of servers at one workload, with linear growth next to them.

import { coordinate, tables } from './data.js';
import { axis, colour, draw, lazily, legend, look, text, tooltip } from '../chart.js';
import { escape, number, ratioInterval, rows } from '../format.js';
import { isShown, whenShown } from './filter.js';

const own = tables.filter((table) => table.axis === 'clients');
/** Clients of servers, or threads of an embedded engine's targets. */
const WORKERS = own[0]?.axis_name ?? 'clients';
const TARGET = WORKERS === 'threads' ? 'target' : 'server';
/** Of many lines those are shown first that a reader can still tell apart. */
const SHOWN = 8;
const FIGURES = [
  ['ratio', `scaleup: throughput / that at the fewest ${WORKERS}`, (figure) => figure.ratio],
  ['efficiency', 'efficiency: share of linear growth, %', (figure) => (figure.efficiency == null ? null : 100 * figure.efficiency)],
  ['cpu', `CPU per operation / that at the fewest ${WORKERS}`, (figure) => figure.cpu?.ratio ?? null],
  ['switches', `context switches per operation / that at the fewest ${WORKERS}`, (figure) => figure.switches?.ratio ?? null],
  ['absolute', 'throughput, ops/s', (figure) => figure.absolute],
];

/** Those with intervals. */
const WHISKERS = ['ratio', 'cpu', 'switches'];

/** Intervals are drawn up to so many times the highest value: one wild interval must not flatten all lines. */
const HIGHEST = 2;

/** A table is of a server; where other coordinates tell tables apart too, its title does. */
function labels() {
  const servers = own.map((table) => coordinate(table, 'server'));
  const unique = new Set(servers).size === own.length && !servers.includes(undefined);
  return own.map((table, nth) => (unique ? servers[nth] : table.title));
}

export function clients() {
  const element = document.getElementById('clients-chart');
  if (!element || !own.length) return;
  const [kind, of, figure] = ['lines-are', 'lines-of', 'lines-figure'].map((id) => document.getElementById(id));
  const names = labels();
  const workloads = [...new Map(own.flatMap((table) => table.rows).map((row) => [row.name, row])).values()];
  kind.append(new Option(`workloads of one ${TARGET}`, 'workloads'), new Option(`${TARGET}s at one workload`, 'servers'));
  if (own.length < 2) kind.closest('label').hidden = true;
  for (const [key, label, read] of FIGURES) {
    const has = own.some((table) => table.rows.some((row) => row.figures.some((one, column) => one && column !== table.base && read(one) != null)));
    if (has) figure.append(new Option(label, key));
  }
  const choices = () => (kind.value === 'workloads' ? names : workloads.map((row) => row.name));
  const fill = () => of.replaceChildren(...choices().map((name, place) => new Option(name, place)));
  fill();
  const lines = () => {
    if (kind.value === 'servers') {
      const { name } = workloads[of.value];
      return own.map((table, nth) => ({ name: names[nth], table, row: table.rows.find((row) => row.name === name) })).filter(({ row }) => row);
    }
    const table = own[of.value];
    return table.rows.filter(isShown).map((row) => ({ name: row.name, table, row }));
  };
  let drawn = false;
  const paint = () => {
    drawn = true;
    paintLines(element, lines(), FIGURES.find(([key]) => key === figure.value), `${of.selectedOptions[0].textContent}`);
  };
  kind.addEventListener('change', () => {
    fill();
    paint();
  });
  for (const select of [of, figure]) select.addEventListener('change', paint);
  lazily(element, paint);
  whenShown(() => drawn && kind.value === 'workloads' && paint());
}

function paintLines(element, lines, [key, label, read], title) {
  const counts = (table) => table.columns.map((column) => Number(column.name));
  const first = lines[0] && counts(lines[0].table);
  const most = Math.max(1, ...lines.flatMap(({ table }) => counts(table)));
  const from = first ? first[lines[0].table.base] : 1;
  const series = lines.map(({ name, table, row }, nth) => ({
    type: 'line',
    name,
    ...look(nth),
    data: row.figures.flatMap((figure, column) => (figure && read(figure) != null ? [{ value: [counts(table)[column], read(figure)], figure }] : [])),
  }));
  const few = series.length <= SHOWN;
  const points = series.flatMap(({ data }) => data.map(({ value }) => value[1]));
  const linear = { ratio: [[from, 1], [most, most / from]], efficiency: [[from, 100], [most, 100]], cpu: [[from, 1], [most, 1]], switches: [[from, 1], [most, 1]] }[key];
  if (linear) {
    series.push({
      type: 'line', name: key === 'ratio' ? 'linear' : `as at the fewest ${WORKERS}`, data: linear, symbol: 'none', silent: true,
      lineStyle: { color: colour('muted'), type: [6, 4], width: 1.5 }, itemStyle: { color: colour('muted') },
    });
  }
  const highest = HIGHEST * Math.max(...points, ...(linear ?? []).map(([, value]) => value), 0);
  element.dataset.title = `${title}: ${label} over ${WORKERS}`;
  draw(element, `${title}: ${label} over ${WORKERS}, ${lines.length} lines`, {
    grid: { left: 58, right: 24, top: 52, bottom: 44 },
    legend: legend({ selected: Object.fromEntries(lines.map(({ name }, nth) => [name, few || nth < SHOWN])) }),
    xAxis: { ...axis(), type: 'value', min: 0, max: most, name: WORKERS, nameLocation: 'middle', nameGap: 26, splitLine: { show: false } },
    yAxis: { ...axis(), type: 'value', min: 0, name: label, nameTextStyle: text({ align: 'left' }), axisLabel: text({ formatter: number }) },
    tooltip: tooltip({ trigger: 'item', formatter: ({ seriesName, data }) => (data?.figure ? pointTip(seriesName, data) : escape(seriesName)) }),
    series: [...series, ...whiskers(series.slice(0, lines.length), key, highest)],
  });
  const hidden = few ? '' : ` The chart first shows ${SHOWN} of ${lines.length} lines. Click a name in the legend to show others.`;
  element.parentElement.querySelector('.note').textContent = `Both axes start at 0.${WHISKERS.includes(key) ? ' Whiskers are 95 % intervals; one with an arrow goes on.' : ''}${hidden}`;
}

/** Intervals at the points, hidden with their line: they have its name. */
function whiskers(series, key, highest) {
  if (!WHISKERS.includes(key)) return [];
  const endsOf = (figure) => (key === 'ratio' ? figure : figure[key]);
  return series.map((line) => ({
    type: 'custom',
    name: line.name,
    silent: true,
    itemStyle: line.itemStyle,
    // The axis has to hold the intervals, too.
    data: line.data.map(({ value, figure }) => [...value, endsOf(figure)?.low ?? value[1], Math.min(endsOf(figure)?.high ?? value[1], highest)]),
    encode: { x: 0, y: [1, 2, 3] },
    renderItem(params, api) {
      const { figure, value } = line.data[params.dataIndex];
      const ends = endsOf(figure);
      if (ends?.low == null) return null;
      const [[x, top], [, bottom]] = [api.coord([value[0], Math.min(ends.high, highest)]), api.coord([value[0], ends.low])];
      const style = { stroke: line.itemStyle.color, lineWidth: 1.2 };
      const part = (x1, y1, x2, y2) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style });
      const upper = ends.high > highest ? [part(x - 4, top + 6, x, top), part(x + 4, top + 6, x, top)] : [part(x - 3, top, x + 3, top)];
      return { type: 'group', emphasisDisabled: true, children: [part(x, top, x, bottom), ...upper, part(x - 3, bottom, x + 3, bottom)] };
    },
  }));
}

function pointTip(name, { value, figure }) {
  const list = [['throughput', `${number(figure.absolute)} ops/s`], ['scaleup', ratioInterval(figure)]];
  if (figure.efficiency != null) list.push(['efficiency (share of linear growth)', `${(100 * figure.efficiency).toFixed(1)}\u00a0%`]);
  if (figure.cpu) list.push(['CPU per operation', ratioInterval(figure.cpu)]);
  if (figure.switches) list.push(['context switches per operation', ratioInterval(figure.switches)]);
  return `<b>${escape(name)}</b> ${value[0]} ${WORKERS}${rows(list)}`;
}
