// The page of a run. Each part stands alone: if one fails, what is on the page without it stays.

import { cards } from './cards.js';
import { course } from './course.js';
import { start } from './filter.js';
import { flames } from './flame.js';
import { forest } from './forest.js';
import { grids } from './grids.js';
import { host } from './host.js';
import { steps } from './steps.js';
import { courseList, gridList } from './page.js';
import { bars, overCandidates, overClients } from './published.js';
import { table } from './table.js';

const MEASURED = [forest, table, cards, bars, overClients, overCandidates, () => grids(gridList), () => course(courseList), host, steps, flames, start];

export function run() {
  // A page of counts alone has no times, and so no forest.
  const measured = document.getElementById('forest-chart');
  if (!measured) document.documentElement.classList.add('scripts');
  for (const part of measured ? MEASURED : [flames]) {
    try {
      part();
    } catch (error) {
      // What needs a script becomes visible, and the static forest hides, once the script is here.
      if (part === forest) document.documentElement.classList.remove('scripts');
      console.error(error);
    }
  }
}
