// What all charts share: the library with only the parts in use, colours of the page, sizes, saving.

import { connect, init, use } from 'echarts/core';
import { CustomChart, LineChart } from 'echarts/charts';
import {
  DataZoomInsideComponent,
  DataZoomSliderComponent,
  GridComponent,
  LegendPlainComponent,
  LegendScrollComponent,
  MarkLineComponent,
  TooltipComponent,
} from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';

use([
  CustomChart,
  LineChart,
  DataZoomInsideComponent,
  DataZoomSliderComponent,
  GridComponent,
  LegendPlainComponent,
  LegendScrollComponent,
  MarkLineComponent,
  TooltipComponent,
  SVGRenderer,
]);

export { connect };

// Colours are the page's own properties, so that dark mode and print need no second drawing.
export const colour = (name) => `var(--${name})`;
export const FONT = 'system-ui, sans-serif';

/** Lines differ by colour, dash and symbol. All are filled: a hollow one says that there is no answer. */
const DASHES = ['solid', [7, 3], [2, 3], [10, 3, 2, 3], [5, 5], [1, 4]];
const SYMBOLS = ['circle', 'triangle', 'rect', 'diamond', 'path://M0 0H10L5 9Z', 'roundRect', 'pin', 'arrow'];
export function look(place) {
  const stroke = colour(`s${place % 8}`);
  return {
    symbol: SYMBOLS[place % SYMBOLS.length],
    symbolSize: 7,
    lineStyle: { color: stroke, width: 2, type: DASHES[place % DASHES.length] },
    itemStyle: { color: stroke },
    emphasis: { disabled: true },
  };
}

export const text = (more) => ({ color: colour('muted'), fontFamily: FONT, fontSize: 12, ...more });

export const axis = (more) => ({
  axisLine: { show: false, lineStyle: { color: colour('line') } },
  axisTick: { show: false },
  axisLabel: text({ hideOverlap: true, ...more?.label }),
  splitLine: { lineStyle: { color: colour('line') } },
  nameTextStyle: text(),
  axisPointer: { lineStyle: { color: colour('muted') }, label: { show: false } },
  ...more,
});

export const legend = (more) => ({
  type: 'scroll',
  top: 0,
  left: 0,
  right: 0,
  itemWidth: 30,
  itemHeight: 9,
  textStyle: text({ color: colour('fg') }),
  inactiveColor: colour('line'),
  inactiveBorderColor: colour('line'),
  pageIconColor: colour('fg'),
  pageIconInactiveColor: colour('line'),
  pageTextStyle: text(),
  ...more,
});

export const tooltip = (more) => ({
  confine: true,
  transitionDuration: 0,
  className: 'tip',
  // The page's style gives it its colours.
  backgroundColor: '',
  borderWidth: 0,
  padding: 0,
  extraCssText: 'box-shadow:none',
  ...more,
});

const zoomColours = {
  borderColor: colour('line'),
  backgroundColor: 'transparent',
  fillerColor: colour('band'),
  handleStyle: { color: colour('bg'), borderColor: colour('muted') },
  moveHandleStyle: { color: colour('line') },
  dataBackground: { lineStyle: { color: colour('line') }, areaStyle: { color: colour('card') } },
  selectedDataBackground: { lineStyle: { color: colour('muted') }, areaStyle: { color: colour('band') } },
  emphasis: { handleStyle: { color: colour('bg'), borderColor: colour('fg') }, moveHandleStyle: { color: colour('muted') } },
  textStyle: text({ fontSize: 11 }),
};

/** Zoom by a slider, and by the wheel with Ctrl so that the page still scrolls. */
export const zoom = (more) => [
  { type: 'inside', zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false, filterMode: 'none', ...more },
  { type: 'slider', height: 16, bottom: 4, showDetail: false, brushSelect: false, filterMode: 'none', ...zoomColours, ...more },
];

const drawn = new Map();
const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const chart = drawn.get(target);
    // Nothing is drawn again for print or while hidden.
    if (!chart || contentRect.width < 1 || matchMedia('print').matches) continue;
    if (Math.abs(chart.getWidth() - contentRect.width) > 1 || Math.abs(chart.getHeight() - contentRect.height) > 1) {
      chart.resize();
      frame(target, chart);
      target.dispatchEvent(new CustomEvent('resized'));
    }
  }
});

/** Draws a chart, or draws it again. */
export function draw(element, label, option) {
  let chart = drawn.get(element);
  if (!chart) {
    chart = init(element, null, { renderer: 'svg' });
    drawn.set(element, chart);
    sizes.observe(element);
  }
  element.setAttribute('role', 'img');
  element.setAttribute('aria-label', label);
  chart.setOption({ animation: false, useUTC: true, backgroundColor: 'transparent', ...option }, { notMerge: true });
  frame(element, chart);
  return chart;
}

/** With a viewBox a chart can be scaled to the paper. */
function frame(element, chart) {
  element.querySelector('svg')?.setAttribute('viewBox', `0 0 ${chart.getWidth()} ${chart.getHeight()}`);
}

/** Calls `make` when the element comes near the window, or before the page is printed. */
const waiting = new Map();
const near = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting) now(entry.target);
  },
  { rootMargin: '300px' },
);
export function lazily(element, make) {
  waiting.set(element, make);
  near.observe(element);
}
function now(element) {
  const make = waiting.get(element);
  waiting.delete(element);
  near.unobserve(element);
  try {
    make?.();
  } catch (error) {
    // One chart that fails must not take the others with it.
    console.error(error);
  }
}
export function drawAll() {
  // What is closed has no width.
  for (const element of [...waiting.keys()]) if (element.clientWidth) now(element);
}

/** Saves a chart as a picture that carries the page's title and the chart's. */
async function save(element) {
  const svg = element.querySelector('svg');
  if (!svg) return;
  const style = getComputedStyle(document.documentElement);
  const resolved = (source) => source.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  const [width, height] = [svg.clientWidth, svg.clientHeight];
  const image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(resolved(new XMLSerializer().serializeToString(svg)))}`;
  await image.decode();
  const [scale, head, edge] = [2, 54, 16];
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [scale * (width + 2 * edge), scale * (height + head + edge)];
  const pen = canvas.getContext('2d');
  pen.scale(scale, scale);
  pen.fillStyle = style.getPropertyValue('--bg').trim();
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.getPropertyValue('--fg').trim();
  pen.font = `600 15px ${FONT}`;
  pen.fillText(element.dataset.title ?? '', edge, 22, width);
  pen.fillStyle = style.getPropertyValue('--muted').trim();
  pen.font = `12px ${FONT}`;
  pen.fillText(document.title, edge, 41, width);
  pen.drawImage(image, edge, head, width, height);
  const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = `${element.id || 'chart'}.png`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

document.addEventListener('click', (event) => {
  const id = event.target.closest?.('[data-save]')?.dataset.save;
  if (id) save(document.getElementById(id));
});
