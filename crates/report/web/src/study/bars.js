// Bars of each group: a bar for each column, from 1 up or down, with its interval.

import { groups, isClaim, tables } from './data.js';
import { axis, colour, draw, lazily, legend, text, tooltip } from '../chart.js';
import { escape, tickDigits } from '../format.js';
import { isShown, whenShown } from './filter.js';
import { figureTip } from './heat.js';

/** What the parts of the chart are, and what a click does. */
const READING = 'Thin lines are 95 % intervals. Pale bars are inconclusive or unfit. Click a name in the legend to hide or show its column.';
const LIMITS = [0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5];
/** Columns differ by colour, and every eight of them by how a bar is filled. */
const swatch = (nth) => {
  const paint = colour(`s${(nth + 1) % 8}`);
  return nth < 8 ? { fill: paint, stroke: paint } : { fill: colour('card'), stroke: paint, lineDash: nth < 16 ? undefined : [3, 2] };
};

/** Ratios near 1 have an axis around 1, those far from it one from 0. A few wild figures must not flatten all others. */
function scaleOf(table, others) {
  const ends = table.rows.flatMap((row) => others.flatMap((place) => {
    const figure = row.figures[place];
    return figure ? [figure.low ?? figure.ratio, figure.high ?? figure.ratio] : [];
  }));
  const far = ends.map((end) => Math.abs(end - 1)).sort((a, b) => a - b);
  const most = far[Math.floor(0.94 * (far.length - 1))] ?? 0;
  const limit = LIMITS.find((one) => one >= most);
  if (limit) return { low: 1 - limit, high: 1 + limit, interval: limit / 2, digits: 2 + tickDigits(limit), from: 1, cut: far.at(-1) > limit };
  return { low: 0, high: Math.ceil(10 * Math.max(...ends)) / 10, interval: undefined, digits: 1, from: 0, cut: false };
}

export function bars() {
  for (const place of document.querySelectorAll('[data-bars]')) {
    const table = tables[place.dataset.bars];
    const others = table.columns.map((_, column) => column).filter((column) => column !== table.base);
    const scale = scaleOf(table, others);
    place.closest('details').querySelector('.bars-note').textContent = scale.from
      ? `Bars start at 1.00, which is ${table.columns[table.base].name}. The axis goes from ${scale.low.toFixed(2)} to ${scale.high.toFixed(2)} and does not start at 0.${scale.cut ? ' An arrow marks a bar that is longer than the axis.' : ''} ${READING}`
      : `Bars and axis start at 0. ${READING}`;
    for (const group of groups) {
      const own = table.rows.filter((row) => row.group === group.key);
      if (own.length) groupOf(place, table, group, own, others, scale);
    }
  }
}

function groupOf(place, table, group, own, others, scale) {
  const id = `bars-${table.place + 1}-${group.key}`;
  const figure = document.createElement('figure');
  figure.className = 'plot';
  figure.style.flex = `${own.length} 1 ${Math.max(320, own.length * Math.max(44, 11 * others.length) + 90)}px`;
  figure.innerHTML = `<p class="metric">${escape(group.heading)}</p><div class="scroll"><div class="chart" id="${id}"></div></div>
    <figcaption class="legend"><button type="button" data-save="${id}">save as image</button></figcaption>`;
  const element = figure.querySelector('.chart');
  element.style.cssText = `height:330px;min-width:${own.length * Math.max(26, 9 * others.length) + 70}px`;
  element.dataset.title = `${table.title}: ${group.heading}`;
  place.append(figure);
  let drawn = false;
  let selected = {};
  const paint = () => {
    drawn = true;
    const rows = own.filter(isShown);
    figure.hidden = !rows.length;
    if (!rows.length) return;
    const chart = drawGroup(element, { table, group, rows, others, scale, selected });
    chart.off('legendselectchanged');
    chart.on('legendselectchanged', (event) => {
      selected = event.selected;
      paint();
    });
  };
  lazily(element, paint);
  whenShown(() => {
    figure.hidden = !own.some(isShown);
    if (drawn) paint();
  });
}

function drawGroup(element, { table, group, rows, others, scale, selected }) {
  const name = (column) => table.columns[column].name;
  const visible = others.filter((column) => selected[name(column)] !== false);
  const clip = (ratio) => Math.max(scale.low, Math.min(ratio, scale.high));
  const series = others.map((column, nth) => {
    const own = rows.map((row, at) => ({ row, at })).filter(({ row }) => row.figures[column]);
    return {
      type: 'custom',
      name: name(column),
      data: own.map(({ row, at }) => ({ value: [at, clip(row.figures[column].ratio)], row, column })),
      encode: { x: 0, y: 1 },
      itemStyle: { color: colour(`s${(nth + 1) % 8}`) },
      renderItem(params, api) {
        const figure = own[params.dataIndex].row.figures[column];
        const wide = Math.min(api.size([1, 0])[0] * 0.84, 60 * visible.length) / visible.length;
        const x = api.coord([api.value(0), 0])[0] + (visible.indexOf(column) - visible.length / 2) * wide;
        const y = (ratio) => api.coord([0, clip(ratio)])[1];
        const [zero, end, middle] = [y(scale.from), y(figure.ratio), x + wide / 2];
        const opacity = isClaim(figure) ? 1 : 0.3;
        const children = [{
          type: 'rect',
          shape: { x: x + 0.5, y: Math.min(zero, end), width: Math.max(wide - 1, 1), height: Math.max(Math.abs(end - zero), 1) },
          style: { ...swatch(nth), lineWidth: 1, opacity },
        }];
        if (figure.low != null) {
          const [top, bottom, half] = [y(figure.high), y(figure.low), Math.min(4, wide / 3)];
          const style = { stroke: colour('fg'), lineWidth: 1 };
          for (const [x1, y1, x2, y2] of [[middle, top, middle, bottom], [middle - half, top, middle + half, top], [middle - half, bottom, middle + half, bottom]]) {
            children.push({ type: 'line', shape: { x1, y1, x2, y2 }, style });
          }
        }
        if (clip(figure.ratio) !== figure.ratio) {
          const [tip, foot] = figure.ratio > 1 ? [end - 9, end - 2] : [end + 9, end + 2];
          children.push({ type: 'polygon', shape: { points: [[middle - 5, foot], [middle + 5, foot], [middle, tip]] }, style: { fill: colour('fg') } });
        }
        return { type: 'group', emphasisDisabled: true, children };
      },
    };
  });
  const names = rows.map((row) => row.name);
  const narrow = (element.clientWidth - 70) / names.length < 110;
  return draw(element, `${table.title}, ${group.heading}: ${names.length} workloads, ${others.length} columns`, {
    grid: { left: 48, right: 8, top: 40, bottom: narrow ? 120 : 30 },
    legend: legend({
      selected,
      data: others.map((column, nth) => {
        const { fill, stroke, lineDash } = swatch(nth);
        return { name: name(column), icon: 'rect', itemStyle: { color: fill, borderColor: stroke, borderWidth: 1.5, borderType: lineDash ?? 'solid' } };
      }),
    }),
    xAxis: {
      ...axis(), type: 'category', data: names, splitLine: { show: false },
      axisLabel: text({ interval: 0, rotate: narrow ? 42 : 0, width: 150, overflow: 'truncate', color: colour('fg') }),
      axisLine: { show: true, onZero: false, lineStyle: { color: colour('line') } },
    },
    yAxis: { ...axis(), type: 'value', min: scale.low, max: scale.high, interval: scale.interval, axisLabel: text({ showMaxLabel: scale.from ? null : false, formatter: (value) => value.toFixed(scale.digits) }) },
    tooltip: tooltip({ trigger: 'item', formatter: ({ data }) => (data?.row ? figureTip(table, data.row, data.column) : '') }),
    series: [...series, equal()],
  });
}

/** The line at 1: the base. */
const equal = () => ({
  type: 'line', data: [], silent: true, symbol: 'none',
  markLine: { silent: true, symbol: 'none', label: { show: false }, data: [{ yAxis: 1 }], lineStyle: { color: colour('fg'), width: 1, type: 'solid' } },
});
