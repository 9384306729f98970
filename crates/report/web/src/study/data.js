// The study's data: what Rust wrote into the page, with names instead of places in lists.

const raw = JSON.parse(document.getElementById('study').textContent);

const interval = (v) => v && { ratio: v[0], low: v[1], high: v[2] };
const figure = (v) => v && v[0] && {
  ...interval(v[0]), absolute: v[1], verdict: v[2], repetitions: v[3], efficiency: v[4], cpu: interval(v[5]), relative: interval(v[6]), perCost: v[7], switches: interval(v[8]),
};

export const gridList = raw.grids;
export const groups = raw.groups.map(([key, heading]) => ({ key, heading }));
export const verdictOf = new Map(raw.verdicts.map((verdict) => [verdict.key, verdict]));
export const tables = raw.tables.map((table, place) => ({
  ...table,
  place,
  columns: table.columns.map(([name, cost]) => ({ name, cost })),
  rows: table.rows.map((row) => ({ ...row, figures: row.figures.map(figure) })),
}));

/** A figure that is open or void is no claim. */
export const isClaim = (figure) => figure.verdict !== 'inconclusive' && figure.verdict !== 'unfit';
export const coordinate = (table, axis) => table.coordinates.find(([name]) => name === axis)?.[1];
