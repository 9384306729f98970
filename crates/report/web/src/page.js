// The page's data: what Rust wrote into it, with names instead of places in lists.

const raw = JSON.parse(document.getElementById('data').textContent);

const value = (v) => v && {
  base: v[0], candidate: v[1], ratio: v[2][0], low: v[2][1], high: v[2][2], verdict: v[3] ?? null, difference: v[4] ?? '',
};
const interval = (v) => v && { ratio: v[0], low: v[1], high: v[2] };

export const base = raw.base;
/** What does the work of a cell: client or thread. */
export const worker = raw.worker;
export const sides = raw.sides;
export const verdicts = raw.verdicts;
export const groups = raw.groups.map(([key, heading]) => ({ key, heading }));
export const metrics = raw.metrics;
export const placebo = raw.placebo.map(interval);
export const means = raw.means.map((mean) => ({ ...mean, ratios: mean.ratios.map(interval) }));
export const series = raw.series;
export const gridList = raw.grids;
export const explained = raw.explained ?? [];
export const courseList = raw.course;
export const steps = raw.steps ?? null;
export const marks = raw.marks.map(([at, kind, server, text]) => ({ at, kind, server, text }));
export const verdictOf = new Map(verdicts.map((verdict, rank) => [verdict.key, { ...verdict, rank }]));
export const nameOf = new Map(sides.map((side) => [side.id, side.name]));

// Metrics that the whole comparison has come first; the rest are costs.
export const compared = metrics.filter((metric) => metric.compared).length;

export const cells = raw.cells.map((cell, place) => ({
  ...cell,
  place,
  clientsText: `${cell.clients} ${worker}${cell.clients === 1 ? '' : 's'}`,
  candidateName: nameOf.get(cell.candidate),
  values: cell.values.map(value),
  placebo: cell.placebo.map(interval),
  published: cell.published && { base: cell.published[0], candidate: cell.published[1], unit: cell.published[2] },
  costs: cell.costs.map(([metric, b, c, difference, ratio, nothing, moved]) => ({
    metric,
    base: b,
    candidate: c,
    difference: { estimate: difference[0], low: difference[1], high: difference[2] },
    ratio: interval(ratio),
    placebo: interval(nothing),
    moved,
  })),
}));
export const cellOf = new Map(cells.map((cell) => [cell.id, cell]));
export const candidates = sides.filter((side) => side.role === 'candidate');

/** What the sides are called where they stand beside each other: by their part too where names are equal. */
const unlike = new Set([base, ...candidates.map((side) => side.name)]).size === candidates.length + 1;
export const baseLabel = unlike ? base : `base: ${base}`;
const labels = new Map(
  candidates.map(({ id, name }, nth) => [id, unlike ? name : `candidate${candidates.length > 1 ? ` ${nth + 1}` : ''}: ${name}`]),
);
export const labelOf = (id) => labels.get(id);

/** What a cell says about a metric, costs included: base, candidate, ratio, low, high, verdict; or nothing. */
export function valueOf(cell, metric) {
  if (metric < compared) return cell.values[metric];
  const cost = cell.costs.find((one) => one.metric === metric);
  return cost && cost.ratio ? { base: cost.base, candidate: cost.candidate, ...cost.ratio, verdict: null } : null;
}

/** The same of the placebo. */
export function placeboOf(cell, metric) {
  if (metric < compared) return cell.placebo[metric];
  return cell.costs.find((one) => one.metric === metric)?.placebo ?? null;
}

/** Whether a cell's workload has cells with other numbers of clients, so that its name alone says too little. */
const byName = Map.groupBy
  ? Map.groupBy(cells, (cell) => cell.name)
  : cells.reduce((map, cell) => map.set(cell.name, [...(map.get(cell.name) ?? []), cell]), new Map());
export const severalClients = (cell) => byName.get(cell.name).some((other) => other.clients !== cell.clients);
