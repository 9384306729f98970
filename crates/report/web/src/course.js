// What each server did over measured time in a cell.

import { axis, draw, lazily, legend, look, text, tooltip } from './chart.js';
import { escape, number, rows } from './format.js';

const FIGURES = [
  ['throughput, ops/s', ([, rate]) => rate],
  ['mean latency, ms', ([, , latency]) => (latency == null ? null : latency / 1000)],
];

export function course(list) {
  const element = document.getElementById('course-chart');
  if (!element || !list.length) return;
  const [of, figure] = ['course-of', 'course-figure'].map((id) => document.getElementById(id));
  of.append(...list.map(({ name }, place) => new Option(name, place)));
  figure.append(...FIGURES.map(([name], place) => new Option(name, place)));
  const paint = () => lines(element, list[of.value], FIGURES[figure.value]);
  for (const select of [of, figure]) select.addEventListener('change', paint);
  lazily(element, paint);
}

function lines(element, { name, servers }, [title, read]) {
  element.dataset.title = `${name}: ${title}`;
  const most = Math.max(...servers.flatMap(({ points }) => points.map(([at]) => at)));
  draw(element, `${name}: ${title} over time, ${servers.length} lines`, {
    grid: { left: 62, right: 24, top: 52, bottom: 44 },
    legend: legend(),
    xAxis: { ...axis(), type: 'value', min: 0, max: most, name: 'measured seconds', nameLocation: 'middle', nameGap: 26, splitLine: { show: false }, axisLabel: text({ hideOverlap: true, showMaxLabel: false }) },
    yAxis: { ...axis(), type: 'value', min: 0, name: title, nameTextStyle: text({ align: 'left' }), axisLabel: text({ formatter: number }) },
    tooltip: tooltip({
      trigger: 'item',
      formatter: ({ seriesName, data }) => `<b>${escape(seriesName)}</b>${rows([['until', `${number(data[0])} s`], [title, number(data[1])]])}`,
    }),
    series: servers.map((server, nth) => ({
      type: 'line',
      name: server.name,
      ...look(nth),
      symbolSize: 4,
      lineStyle: { ...look(nth).lineStyle, width: 1.4 },
      data: server.points.filter((point) => read(point) != null).map((point) => [point[0], read(point)]),
    })),
  });
  element.parentElement.querySelector('.note').textContent = 'Both axes start at 0. Each point covers an interval of measured time. Servers take turns, so points at the same place on the axis were measured at about the same time.';
}
