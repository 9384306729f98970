// The pages of a lab in a real browser. They come from the site crate's tests; see scripts/test-web.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import { browsed, on, phone, picture } from './browser.js';

const narrow = { width: 360, height: 740 };
/** Nothing is wider than the screen. */
async function fits(page, name) {
  await picture(page, `lab-${name}-phone`, { fullPage: true });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  const screen = page.viewportSize().width;
  assert.ok(width <= screen, `${name} is ${width} wide`);
}
const shown = (page) => page.locator('[data-text]:visible').count();

describe('the pages of a lab', () => {
  it('filter runs by text, target and state, and keep the choice in the address', async () => {
    await on('lab/runs', {}, async (page) => {
      assert.equal(await shown(page), 31);
      await page.fill('[name=q]', '18.3 point-query');
      assert.equal(await shown(page), 2);
      assert.equal(await page.textContent('#count'), '2 of 31');
      await page.fill('[name=q]', '');
      await page.selectOption('[name=target]', 'postgres:18.7');
      assert.equal(await shown(page), 1);
      await page.selectOption('[name=target]', '');
      await page.selectOption('[name=state]', 'withdrawn');
      assert.equal(await shown(page), 1);
      assert.match(page.url(), /state=withdrawn/);
      await page.reload();
      assert.equal(await shown(page), 1);
    });
  });

  it('are found by the keyboard: search, and from there to a page', async () => {
    await on('lab/search', {}, async (page) => {
      assert.equal(await page.evaluate(() => document.activeElement.name), 'q');
      await page.keyboard.type('postgres:18.3');
      await page.keyboard.press('Enter');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.waitForURL(/\/version\//);
      assert.equal(await page.textContent('h1'), 'postgres:18.3');
    });
  });

  it('say what changed and are readable without a script and in the dark', async () => {
    await on('lab/index', { javaScriptEnabled: false, colorScheme: 'dark' }, async (page) => {
      await picture(page, 'lab-dark', { fullPage: true });
      assert.match(await page.textContent('h1'), /3 regressions/);
      assert.equal(await page.locator('#changes tbody tr').count(), 3);
      assert.match(await page.textContent('#changes tbody tr'), /slower.*-5\.0 %/);
      const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(dark, 'rgb(20, 23, 27)');
    });
  });

  it('fit a phone of 360 pixels', async () => {
    for (const name of ['index', 'runs', 'versions', 'cells', 'hosts', 'search', `run/20261101-000000-0009`]) {
      await on(`lab/${name}`, { viewport: narrow }, async (page) => {
        await picture(page, `lab-${name.split('/')[0]}-phone`);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= narrow.width, `${name} is ${width} wide`);
      });
    }
  });

  it('lead from a change to its versions, cell by cell, and hide what cannot be told', async () => {
    await on('lab/changes', { viewport: narrow, colorScheme: 'dark' }, async (page) => {
      await fits(page, 'changes');
      await page.selectOption('[name=metric]', 'throughput');
      await page.focus('#confirmed tr:not([hidden]) th[scope=row] a');
      await page.keyboard.press('Enter');
      await page.waitForURL(/\/change\//);
      await fits(page, 'change');
      assert.match(await page.textContent('h1'), /point-query@1 slower, postgres:17\.11 → postgres:18\.9/);
      await page.click('text=all cells of these two versions');
      await page.waitForURL(/\/compare\//);
      await fits(page, 'compare');
      assert.equal(await shown(page), 3);
      await page.selectOption('[name=show]', 'differs');
      assert.equal(await shown(page), 1);
      assert.match(await page.textContent('[data-text]:visible'), /slower/);
      await page.click('[data-text]:visible th a');
      await page.waitForURL(/\/trend\//);
      await fits(page, 'trend');
      assert.match(await page.textContent('#notes'), /18\.4: LTO on/);
    });
  });

  it('show each cell as a band with its last event, also on a phone', async () => {
    await on('lab/trends', {}, async (page) => {
      await picture(page, 'lab-trends', { fullPage: true });
      assert.equal(await page.locator('.grid svg').count(), 6);
      await page.selectOption('[name=changed]', 'confirmed');
      assert.ok(await shown(page) < 6);
      await page.setViewportSize(narrow);
      await fits(page, 'trends');
      await page.click('[data-text]:visible .small');
      await page.waitForURL(/\/trend\//);
      assert.equal(await page.locator('figure svg').count(), 4);
    });
  });

  it('lead from a change to its run and back to the lab', async () => {
    await on('lab/index', { viewport: phone }, async (page) => {
      await page.click('#changes tbody td a[href^="run/"]');
      // By the script that all reports share.
      await page.waitForSelector('.chart svg');
      assert.match(await page.textContent('.about'), /host/);
      await page.click('nav.lab a');
      assert.match(page.url(), /lab\/index\.html$/);
    });
  });

  it('draw the charts of a report also where a site is served', async () => {
    const site = resolve(process.env.DELTABENCH_PAGES, 'lab');
    const kinds = { html: 'text/html', js: 'text/javascript' };
    const server = createServer((request, answer) => {
      const path = request.url.split('?')[0];
      if (path === '/favicon.ico') return answer.writeHead(204).end();
      answer.writeHead(200, { 'content-type': kinds[path.split('.').pop()] });
      answer.end(readFileSync(resolve(site, `.${path}`)));
    });
    await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
    try {
      await browsed(`http://127.0.0.1:${server.address().port}/run/20261101-000000-0009.html`, {}, async (page) => {
        await page.waitForSelector('.chart svg');
      });
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('show a block as soon as it is measured', async () => {
    const text = readFileSync(resolve(process.env.DELTABENCH_PAGES, 'live.html'));
    let stream;
    const server = createServer((request, answer) => {
      if (request.url.endsWith('/events')) {
        answer.writeHead(200, { 'content-type': 'text/event-stream' });
        stream = answer;
        tell({ blocks_done: 0, visits_done: 1 });
      } else {
        answer.writeHead(200, { 'content-type': 'text/html' });
        answer.end(text);
      }
    });
    const tell = (said) => {
      const data = { state: 'running', blocks_planned: 8, ended: false, ...said };
      stream.write(`event: progress\ndata: ${JSON.stringify(data)}\n\n`);
    };
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    try {
      await browsed(`http://127.0.0.1:${server.address().port}/run/x/live`, {}, async (page) => {
        await page.waitForFunction(() => document.querySelector('#visits').textContent === '1');
        assert.equal(await page.textContent('#blocks'), '0 of 8');
        tell({ blocks_done: 1, visits_done: 3 });
        await page.waitForFunction(() => document.querySelector('#blocks').textContent === '1 of 8');
        assert.ok(await page.locator('#ended').isHidden());
        tell({ state: 'finished', blocks_done: 8, visits_done: 24, ended: true });
        await page.waitForSelector('#ended:not([hidden])');
      });
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
