// Numbers as the rest of the page prints them: a real minus, a space before the percent sign that does not break.

const minus = (text) => text.replace('-', '−');

const signed = (ratio, digits) => {
  const text = (100 * (ratio - 1)).toFixed(digits);
  if (Number(text) === 0) return `+${(0).toFixed(digits)}`;
  return text.startsWith('-') ? minus(text) : `+${text}`;
};

/** `−3.4 %` */
export const change = (ratio, digits = 1) => `${signed(ratio, digits)}\u00a0%`;

/** `−3.4 % [−4.1, −2.7]` */
export function changeInterval(value, digits = 1) {
  if (value.low == null) return `${change(value.ratio, digits)} [no interval]`;
  return `${change(value.ratio, digits)} [${signed(value.low, digits)}, ${signed(value.high, digits)}]`;
}

/** `0.9660 [0.9581, 0.9731]` */
export function ratioInterval(value) {
  const text = (ratio) => ratio.toFixed(4);
  if (value.low == null) return `${text(value.ratio)} [no interval]`;
  return `${text(value.ratio)} [${text(value.low)}, ${text(value.high)}]`;
}

/** Three digits that matter, or all before the point. */
export function number(value) {
  if (value == null) return 'unknown';
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 100) return minus(value.toFixed(0));
  if (size >= 10) return minus(value.toFixed(1));
  if (size >= 1) return minus(value.toFixed(2));
  if (size >= 0.001) return minus(value.toPrecision(3));
  return minus(value.toExponential(1));
}

/** All digits that the page has. */
export const exact = (value) => (value == null ? 'unknown' : minus(String(value)));

/** A share as percent without needless zeros. */
export const share = (value) => `${minus(String(Number((100 * value).toFixed(2))))}\u00a0%`;

const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
/** Text that may stand in HTML. */
export const escape = (text) => String(text).replace(/[&<>"']/g, (sign) => escapes[sign]);

/** Ends that an axis of ratios may have, as shares on either side of equal: those of the rest of the page. */
const LIMITS = [0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1];

/** The smallest that holds all these ratios. Beyond 1 they are cut: one wild cell must not flatten all others. */
export function limitOf(ratios, least = 0) {
  const farthest = ratios
    .filter((ratio) => ratio != null && Number.isFinite(ratio))
    .reduce((most, ratio) => Math.max(most, Math.abs(ratio - 1)), least);
  return LIMITS.find((limit) => limit >= farthest) ?? 1;
}

/** What an axis of ratios shows, in words; what is beyond it is drawn to its end. */
export function axisWords(limit, ratios) {
  const beyond = ratios.some((ratio) => ratio != null && Math.abs(ratio - 1) > limit);
  const start = limit < 1 ? ' and does not start at 0' : '';
  return `The axis goes from ${(1 - limit).toFixed(2)} to ${(1 + limit).toFixed(2)}${start}.${beyond ? ' What reaches its end goes on beyond it.' : ''}`;
}

/** Digits after the point that the ticks of an axis need in percent: they lie at halves of its end. */
export const tickDigits = (limit) => (Number.isInteger(Number((50 * limit).toFixed(6))) ? 0 : 1);

/** Rows of a small table in a tooltip. */
export const rows = (list) =>
  `<table>${list.map((row) => `<tr>${row.map((cell) => `<td>${escape(cell)}</td>`).join('')}</tr>`).join('')}</table>`;
