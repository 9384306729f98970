// The page of a study. Each part stands alone: if one fails, what is on the page without it stays.

import { bars } from './bars.js';
import { clients } from './clients.js';
import { cost } from './cost.js';
import { filters } from './filter.js';
import { grids } from '../grids.js';
import { gridList } from './data.js';
import { heat } from './heat.js';

export function study() {
  document.documentElement.classList.add('scripts');
  for (const part of [heat, bars, clients, cost, () => grids(gridList), filters]) {
    try {
      part();
    } catch (error) {
      console.error(error);
    }
  }
  // A link to a table opens it.
  const follow = () => {
    const details = document.getElementById(location.hash.slice(1))?.querySelector('details');
    if (details) details.open = true;
  };
  addEventListener('hashchange', follow);
  follow();
}
