// What storage gives for its price: operations a second for each unit of money a month.

import { tables } from './data.js';
import { axis, colour, draw, lazily, text, tooltip } from '../chart.js';
import { number } from '../format.js';
import { figureTip } from './heat.js';

export function cost() {
  for (const place of document.querySelectorAll('[data-cost]')) {
    const table = tables[place.dataset.cost];
    const select = place.querySelector('select');
    const element = place.querySelector('.chart');
    const priced = table.rows.filter((row) => row.figures.some((figure) => figure?.perCost != null));
    select.append(...priced.map((row, nth) => new Option(row.name, nth)));
    const paint = () => {
      const row = priced[select.value];
      const columns = table.columns.map((column, at) => ({ ...column, at, figure: row.figures[at] })).filter(({ figure }) => figure?.perCost != null);
      element.dataset.title = `${row.name}: operations per second for each unit of monthly cost`;
      draw(element, element.dataset.title, {
        grid: { left: 62, right: 12, top: 26, bottom: 46 },
        xAxis: {
          ...axis(), type: 'category', data: columns.map(({ name, cost }) => `${name}\n${cost == null ? '' : `${cost} a month`}`), splitLine: { show: false },
          axisLabel: text({ interval: 0, color: colour('fg'), width: (element.clientWidth - 74) / columns.length, overflow: 'truncate' }),
        },
        yAxis: { ...axis(), type: 'value', min: 0, name: 'ops/s per unit', axisLabel: text({ formatter: number }) },
        tooltip: tooltip({ trigger: 'item', formatter: ({ dataIndex }) => figureTip(table, row, columns[dataIndex].at) }),
        series: [{
          type: 'custom',
          data: columns.map(({ figure }, nth) => [nth, figure.perCost]),
          encode: { x: 0, y: 1 },
          renderItem: (params, api) => bar(api, columns[params.dataIndex].figure, params.dataIndex),
        }],
      });
      place.querySelector('.note').textContent = 'The axis starts at 0. Thin lines are the intervals relative to the first column. Prices are those of the storage profiles. They do not include servers and network.';
    };
    select.addEventListener('change', paint);
    lazily(element, paint);
  }
}

function bar(api, figure, nth) {
  const wide = Math.min(api.size([1, 0])[0] * 0.6, 90);
  const [[x, zero], [, top]] = [api.coord([nth, 0]), api.coord([nth, figure.perCost])];
  const children = [
    { type: 'rect', shape: { x: x - wide / 2, y: top, width: wide, height: zero - top }, style: { fill: colour('s1') } },
    { type: 'text', x: x + wide / 2 - 3, y: top - 4, style: { text: number(figure.perCost), fill: colour('fg'), align: 'right', verticalAlign: 'bottom', fontSize: 11 } },
  ];
  if (figure.low != null) {
    const y = (ratio) => api.coord([nth, (figure.perCost * ratio) / figure.ratio])[1];
    const style = { stroke: colour('fg'), lineWidth: 1.2 };
    children.push({ type: 'line', shape: { x1: x, x2: x, y1: y(figure.low), y2: y(figure.high) }, style });
  }
  return { type: 'group', emphasisDisabled: true, children };
}
