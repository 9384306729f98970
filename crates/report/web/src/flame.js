// A differential flame graph for each explained cell: root at the top, a frame for each function on its path.

import { explained } from './page.js';
import { colour, draw, FONT, lazily, tooltip } from './chart.js';
import { change, escape, number, rows } from './format.js';

const ROW = 19;
/** A digit or letter of the labels, on average. */
const LETTER = 6.3;
/** Below this a frame is left out: it could not be seen. */
const THIN = 0.7;
/** Below so many instructions per operation both sides are the same. */
const SAME = 0.05;

const WIDTHS = {
  candidate: (frame) => frame.candidate.all,
  base: (frame) => frame.base.all,
  // More here and less there would make up for each other: what differs is summed without its sign.
  difference: (frame) => frame.apart,
};

export function flames() {
  for (const element of document.querySelectorAll('[data-flame]')) {
    const graph = new Flame(element, explained[Number(element.dataset.flame)]);
    lazily(graph.chart, () => graph.begin());
  }
}

const signed = (value) => `${value < 0 ? '' : '+'}${number(Math.abs(value) < SAME ? 0 : value)}`;

class Flame {
  constructor(element, data) {
    this.element = element;
    this.data = data;
    this.chart = element.querySelector('.chart');
    this.frames = framesOf(data);
    [this.root] = this.frames;
    this.whole = Math.abs(this.root.change) || 1;
    this.focus = this.root;
    this.selected = null;
    this.find = '';
  }

  begin() {
    const { element, chart } = this;
    element.querySelector('[data-widths]').addEventListener('change', () => this.paint());
    element.querySelector('[data-find]').addEventListener('input', ({ target }) => {
      this.find = target.value.trim().toLowerCase();
      this.paint();
    });
    element.querySelector('[data-whole]').addEventListener('click', () => this.open(this.root));
    for (const button of element.querySelectorAll('[data-file]')) button.addEventListener('click', () => this.save(button.dataset.file));
    chart.addEventListener('resized', () => this.paint());
    chart.addEventListener('keydown', (event) => this.key(event));
    this.paint();
    this.drawn.on('click', ({ dataIndex }) => this.open(this.shown[dataIndex].frame));
    element.querySelector('.note').textContent =
      'The width of a frame is its instructions. ▲ with a solid edge: the candidate takes more. ▼ with a dashed edge: it takes fewer. Grey: the same. A stronger colour is a larger part of the whole difference. Click a frame to open it. With the keyboard, the arrows move, Enter opens and Escape shows the whole graph.';
  }

  /** Frames that can be seen, with their place: those above the opened one have the whole width. */
  layout() {
    const size = WIDTHS[this.element.querySelector('[data-widths]').value];
    const width = this.chart.clientWidth;
    const shown = [];
    const place = (frame, x, wide, row) => {
      if (wide < THIN) return;
      shown.push({ frame, x, wide, row });
      const whole = Math.max(size(frame), 1e-9);
      let at = x;
      for (const child of frame.children) {
        const part = Math.max(0, (wide * size(child)) / whole);
        place(child, at, part, row + 1);
        at += part;
      }
    };
    const above = [];
    for (let frame = this.focus.parent; frame; frame = frame.parent) above.unshift(frame);
    above.forEach((frame, row) => shown.push({ frame, x: 0, wide: width, row }));
    place(this.focus, 0, width, above.length);
    return shown;
  }

  paint() {
    this.shown = this.layout();
    const { shown, chart } = this;
    const height = `${Math.max(120, ROW * (1 + Math.max(...shown.map(({ row }) => row))) + 4)}px`;
    if (chart.style.height !== height) chart.style.height = height;
    const label = `${chart.dataset.title}, ${shown.length} frames`;
    this.drawn = draw(chart, label, {
      tooltip: tooltip({ trigger: 'item', formatter: ({ dataIndex }) => tip(shown[dataIndex].frame) }),
      series: [{
        type: 'custom',
        coordinateSystem: 'none',
        data: shown.map((_, place) => place),
        renderItem: (params) => this.box(shown[params.dataIndex]),
      }],
    });
    this.drawn.resize();
    chart.setAttribute('role', 'application');
    this.say();
  }

  box({ frame, x, wide, row }) {
    const found = this.find && frame.name.toLowerCase().includes(this.find);
    const mark = frame === this.selected ? 'fg' : found ? 'open' : 'bg';
    const same = Math.abs(frame.change) < SAME;
    const share = Math.min(1, Math.abs(frame.change) / this.whole);
    const paint = same ? 'muted' : frame.change > 0 ? 'worse' : 'better';
    const shape = { x: x + 0.5, y: row * ROW + 0.5, width: Math.max(wide - 1, 0.5), height: ROW - 2 };
    const children = [
      { type: 'rect', shape, style: { fill: colour('card') } },
      {
        type: 'rect',
        shape,
        style: {
          fill: colour(paint),
          fillOpacity: same ? 0.12 : 0.12 + 0.4 * share,
          stroke: mark === 'bg' && !same && wide > 4 ? colour(paint) : colour(mark),
          lineWidth: mark === 'bg' ? 0.8 : 2.2,
          lineDash: frame.change < 0 && !same && mark === 'bg' ? [3, 2] : null,
        },
      },
    ];
    if (wide > 34) {
      const sign = same ? '' : ` ${frame.change > 0 ? '▲' : '▼'} ${signed(frame.change)}`;
      const room = Math.floor((wide - 8) / LETTER);
      const name = frame.name.length + sign.length <= room ? frame.name + sign : cut(frame.name, room);
      children.push({ type: 'text', silent: true, x: x + 4, y: row * ROW + ROW / 2, style: { text: name, fill: colour('fg'), font: `11px ${FONT}`, verticalAlign: 'middle' } });
    }
    return { type: 'group', emphasisDisabled: true, children };
  }

  open(frame) {
    this.focus = frame;
    this.selected = frame === this.root ? null : frame;
    this.paint();
  }

  key(event) {
    const at = this.selected ?? this.focus;
    const size = WIDTHS[this.element.querySelector('[data-widths]').value];
    const beside = (step) => {
      const row = at.parent?.children ?? [at];
      return row[row.indexOf(at) + step];
    };
    const ways = {
      ArrowDown: () => at.children.reduce((most, child) => (most && size(most) >= size(child) ? most : child), null),
      ArrowUp: () => at.parent,
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
    };
    if (event.key === 'Enter') this.open(at);
    else if (event.key === 'Escape') this.open(this.root);
    else if (ways[event.key]) {
      this.selected = ways[event.key]() ?? at;
      this.paint();
    } else return;
    event.preventDefault();
  }

  /** What is selected or found, in words. */
  say() {
    const place = this.element.querySelector('.said');
    if (this.selected) place.textContent = words(this.selected);
    else if (this.find) {
      const all = this.frames.filter(({ name }) => name.toLowerCase().includes(this.find));
      const own = all.reduce((sum, frame) => sum + frame.candidate.own - frame.base.own, 0);
      place.textContent = `${all.length} frames match “${this.find}”; difference of their own instructions: ${signed(own)}`;
    } else place.textContent = '';
  }

  save(kind) {
    const name = this.data.title.replace(/[^\w.-]+/g, '-');
    const link = document.createElement('a');
    const text = kind === 'folded' ? folded(this.frames) : callgrind(this.frames, this.data, kind);
    link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
    link.download = kind === 'folded' ? `${name}.folded` : `callgrind.out.${name}.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}

/** The tree, in figures of one operation; as counted in `counts`. */
function framesOf(data) {
  const per = (value) => value / data.operations;
  const frames = data.frames.map(([parent, name, base, candidate, baseCalls, candidateCalls, known, was]) => ({
    above: parent,
    name: data.names[name],
    was: was == null ? null : data.names[was],
    known,
    counts: { base, candidate, baseCalls, candidateCalls },
    base: { own: per(base), all: per(base), calls: per(baseCalls) },
    candidate: { own: per(candidate), all: per(candidate), calls: per(candidateCalls) },
    apart: Math.abs(per(candidate - base)),
    children: [],
  }));
  for (let place = frames.length - 1; place > 0; place -= 1) {
    const frame = frames[place];
    const parent = frames[frame.above];
    frame.parent = parent;
    parent.children.unshift(frame);
    for (const side of ['base', 'candidate']) parent[side].all += frame[side].all;
    parent.apart += frame.apart;
  }
  for (const frame of frames) frame.change = frame.candidate.all - frame.base.all;
  return frames;
}

const cut = (name, room) => (room < 3 ? '' : name.length <= room ? name : `${name.slice(0, room - 1)}…`);
const pathOf = (frame) => (frame.parent ? [...pathOf(frame.parent), frame.name] : [frame.name]);
const KNOWN = ['', 'gone', 'new'];

function words(frame) {
  const { base, candidate } = frame;
  const ratio = base.all ? `, ${change(candidate.all / base.all, 2)}` : '';
  return `${frame.name}${frame.known ? ` (${KNOWN[frame.known]})` : ''}: ${number(base.all)} → ${number(candidate.all)} instructions, ${signed(frame.change)}${ratio}; calls ${number(base.calls)} → ${number(candidate.calls)}`;
}

function tip(frame) {
  const { base, candidate } = frame;
  const line = (name, from, to) => [name, number(from), number(to), signed(to - from)];
  const more = [KNOWN[frame.known], frame.was && `${frame.was} before`].filter(Boolean).join(', ');
  return `<b>${escape(frame.name)}</b>${more ? ` ${escape(more)}` : ''}<div>${escape(pathOf(frame).slice(-5, -1).join(' › '))}</div>${rows([
    ['of one operation', 'base', 'candidate', 'difference'],
    line('instructions', base.all, candidate.all),
    line('own instructions', base.own, candidate.own),
    line('calls', base.calls, candidate.calls),
  ])}`;
}

/** Two columns, base and candidate, of all operations: what difffolded.pl and inferno read. */
function folded(frames) {
  const lines = frames.map((frame) => [pathOf(frame).join(';'), Math.max(0, frame.counts.base), Math.max(0, frame.counts.candidate)]);
  return lines.filter(([, base, candidate]) => base || candidate).map((line) => `${line.join(' ')}\n`).join('');
}

/** One side in callgrind's format, for KCachegrind and callgrind_annotate. It knows no counts below 0. */
function callgrind(frames, data, side) {
  const calls = `${side}Calls`;
  const own = (frame) => Math.max(0, frame.counts[side]);
  const sums = new Map();
  for (const frame of [...frames].reverse()) {
    sums.set(frame, (sums.get(frame) ?? 0) + own(frame));
    if (frame.parent) sums.set(frame.parent, (sums.get(frame.parent) ?? 0) + sums.get(frame));
  }
  const blocks = frames.map((frame) => {
    const below = frame.children.filter((child) => sums.get(child) > 0);
    return `fn=${frame.name}\n0 ${own(frame)}\n${below.map((child) => `cfn=${child.name}\ncalls=${Math.max(1, child.counts[calls])} 0\n0 ${sums.get(child)}\n`).join('')}`;
  });
  const head = `# callgrind format\nversion: 1\ncreator: deltabench\ncmd: ${data[side]}, ${data.title}, ${data.operations} operations\npositions: line\nevents: Ir\n`;
  const total = frames.reduce((sum, frame) => sum + own(frame), 0);
  return `${head}summary: ${total}\n\n${blocks.join('\n')}\ntotals: ${total}\n`;
}
