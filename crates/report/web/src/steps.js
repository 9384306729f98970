// Steps second by second: rates and slowest responses of each server, with what happened on it.

import { steps as series, nameOf } from './page.js';
import { axis, draw, lazily, legend, look, text, tooltip, zoom } from './chart.js';
import { escape, number, rows } from './format.js';

const ROLES = ['inserted', 'deleted', 'queries'];
const STATEMENTS = ['insert', 'delete', 'query'];
/** What happens on a server, each kind with dashes of its own; the colour says on which. */
const KINDS = new Map([
  ['checkpoint', [6, 4]],
  ['autovacuum', [2, 3]],
  ['autoanalyze', [1, 4]],
]);

export function steps() {
  const select = document.getElementById('step-pass');
  if (!series || !select) return;
  const all = series.steps.flatMap((step) => step.servers.flatMap((server) => server.passes.map((pass) => pass.pass)));
  const passes = [...new Set(all)].sort((a, b) => a - b);
  for (const pass of passes) select.add(new Option(`${pass + 1} of ${passes.length}`, pass));
  select.value = passes.at(-1);
  const drawn = [];
  for (const place of document.querySelectorAll('[data-step]')) {
    const step = series.steps[place.dataset.step];
    const has = (role) => step.servers.some((server) => server.passes.some((pass) => pass.roles[role][0].length));
    // As published: what a step is about comes first.
    for (const role of [2, 0, 1].filter(has)) {
      for (const slowest of [0, 1]) {
        const title = slowest ? `Slowest ${STATEMENTS[role]} of each second, ms` : role === 2 ? 'Queries per second' : `Rows ${ROLES[role]} per second`;
        const element = figure(place, `step-${place.dataset.step}-${role}-${slowest}`, `${step.name}: ${title}`, title);
        const show = () => chart(element, step, role, slowest, Number(select.value));
        lazily(element, () => {
          show();
          drawn.push(show);
        });
      }
    }
  }
  select.addEventListener('change', () => drawn.forEach((show) => show()));
}

function figure(place, id, title, heading) {
  const figure = document.createElement('figure');
  figure.className = 'plot';
  figure.innerHTML = `<p class="metric"></p><div class="chart" id="${id}" style="height:220px"></div>
    <figcaption class="legend"><span class="note"></span> <button type="button" data-save="${id}">save as image</button></figcaption>`;
  figure.querySelector('.metric').textContent = heading;
  place.append(figure);
  const element = figure.querySelector('.chart');
  element.dataset.title = title;
  return element;
}

function chart(element, step, role, slowest, wanted) {
  const lines = step.servers
    .map(({ server, passes }, nth) => ({ server, nth, pass: passes.find((pass) => pass.pass === wanted) }))
    .filter(({ pass }) => pass && pass.roles[role][0].length);
  const kinds = new Set(lines.flatMap(({ pass }) => pass.marks.map(([, kind]) => kind)));
  const fold = Math.max(1, ...lines.map(({ pass }) => pass.fold));
  const thinned = lines.filter(({ pass }) => pass.thinned);
  element.parentElement.querySelector('.note').textContent = [
    fold > 1 && `a point is the ${slowest ? 'maximum' : 'mean'} of up to ${fold} seconds`,
    kinds.has('checkpoint') && 'long dashes: a checkpoint of that server',
    kinds.has('autovacuum') && 'short dashes: an autovacuum',
    kinds.has('autoanalyze') && 'dots: an autoanalyze',
    ...thinned.map(({ server, pass }) => {
      const drawn = pass.marks.filter(([, kind]) => kind !== 'checkpoint').length;
      return `${nameOf.get(server)}: the chart shows ${drawn} of ${pass.thinned} vacuums and analyzes, and all checkpoints`;
    }),
  ].filter(Boolean).join('; ');
  draw(element, `${element.dataset.title}, over seconds of pass ${wanted + 1}`, {
    grid: { left: 62, right: 12, top: 34, bottom: 50 },
    legend: legend(),
    xAxis: { ...axis(), type: 'value', min: 0, name: 's', nameGap: 4, splitLine: { show: false }, axisLabel: text({ formatter: number }) },
    yAxis: { ...axis(), type: 'value', min: 0, axisLabel: text({ formatter: number }) },
    tooltip: tooltip({ trigger: 'axis', formatter: (points) => moment(points, slowest ? 'ms' : '/s') }),
    dataZoom: zoom(),
    series: lines.map(({ server, nth, pass }) => line(nameOf.get(server), look(nth), pass, pass.roles[role][slowest])),
  });
}

function line(name, style, pass, values) {
  return {
    type: 'line',
    name,
    data: values.map((value, at) => [at * pass.fold, value]),
    ...style,
    lineStyle: { ...style.lineStyle, width: 1.4 },
    showSymbol: false,
    markLine: {
      silent: true,
      symbol: 'none',
      label: { show: false },
      data: pass.marks.map(([at, kind]) => ({
        xAxis: at,
        lineStyle: { color: style.lineStyle.color, type: KINDS.get(kind) ?? 'dotted', width: 1, opacity: 0.7 },
      })),
    },
  };
}

function moment(points, unit) {
  if (!points.length) return '';
  const list = points.map(({ seriesName, value }) => [seriesName, `${number(value[1])} ${unit}`]);
  return `<b>${escape(number(points[0].axisValue))} s</b>${rows(list)}`;
}
