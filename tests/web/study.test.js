// The page of a study in a real browser. Pages come from the report crate's tests; see scripts/test-web.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resolve } from 'node:path';
import { changed, on, phone, picture, pictures, soon, throughAll } from './browser.js';

describe('the page of a study', () => {
  const rowsOf = (page, table) =>
    page.$$eval(`#${table} .heat tbody:not([hidden]) tr[data-row]:not([hidden]) th`, (all) => all.map((one) => one.textContent));

  it('opens without errors and without asking the network, and draws every chart', async () => {
    for (const name of ['study', 'study-small']) {
      await on(name, {}, async (page) => {
        await page.$$eval('article details', (all) => all.forEach((one) => (one.open = true)));
        await throughAll(page);
        const empty = await page.$$eval('.chart', (all) => all.filter((one) => !one.querySelector('svg')).map((one) => one.id));
        assert.deepEqual(empty, []);
        const drawn = await page.$$eval('svg', (all) => all.map((one) => one.outerHTML).join());
        assert.ok(!drawn.includes('NaN') && !drawn.includes('Infinity'));
        await page.reload();
        await throughAll(page);
        await picture(page, name, { fullPage: name !== 'study' });
      });
    }
  });

  it('shows tables, notes, runs and the switch of colours without a script', async () => {
    await on('study', { javaScriptEnabled: false }, async (page) => {
      assert.equal((await rowsOf(page, 'table-1')).length, 32);
      assert.equal(await page.locator('#find').isVisible(), false);
      await page.locator('.spreads summary').first().click();
      assert.ok(await page.locator('.spreads td').first().isVisible());
      assert.equal(await page.locator('#runs a').getAttribute('href'), '../20261121-1041-7f3a/report.html');
    });
  });

  it('switches colours between verdicts and published bands without a script', async () => {
    await on('study-small', { javaScriptEnabled: false }, async (page) => {
      const paint = (kind) => page.locator(`#table-1 .heat td${kind}`).first().evaluate((cell) => getComputedStyle(cell).backgroundColor);
      const none = await paint('.b-bad.open');
      assert.equal(none, 'rgba(0, 0, 0, 0)');
      await page.locator('#by-bands').check();
      // Published bands colour what has no answer too; verdicts do not.
      assert.notEqual(await paint('.b-bad.open'), none);
      assert.equal(await paint('.b-bad.open'), await paint('.b-bad.worse'));
    });
  });

  it('filters all tables and their bars by text and group, and hides means of parts', async () => {
    await on('study', {}, async (page) => {
      await page.locator('#bars-1-point').scrollIntoViewIfNeeded();
      await page.waitForSelector('#bars-1-point svg');
      await page.fill('#find', 'covered-si');
      assert.deepEqual(await rowsOf(page, 'table-1'), ['points-covered-si', 'points-notcovered-si', 'range-covered-si', 'range-notcovered-si']);
      assert.equal((await rowsOf(page, 'table-2')).length, 4);
      assert.match(await page.locator('#shown').textContent(), /of 322 rows/);
      assert.equal(await page.locator('#table-1 .heat tr.mean:visible').count(), 0);
      const names = () => page.$$eval('#bars-1-point svg text', (all) => all.map((one) => one.textContent).filter((text) => /^point|^random|^hot/.test(text)));
      await page.waitForFunction(() => ![...document.querySelectorAll('#bars-1-point svg text')].some((one) => one.textContent.startsWith('hot')));
      assert.deepEqual((await names()).filter((name) => !name.startsWith('postgres')), ['points-covered-si', 'points-notcovered-si']);
      await page.fill('#find', '');
      await page.selectOption('#group', 'write');
      assert.equal((await rowsOf(page, 'table-1')).length, 10);
      assert.equal(await page.locator('#table-1 .heat tr.mean:visible').count(), 1);
      assert.equal(await page.locator('#bars-1-point').isVisible(), false);
      await page.selectOption('#group', '');
      assert.equal((await rowsOf(page, 'table-1')).length, 32);
      assert.ok(await page.locator('#bars-1-point').isVisible());
    });
  });

  it('says exact values over a figure and by the arrow keys', async () => {
    await on('study-small', {}, async (page) => {
      const tip = page.locator('.floating');
      await page.locator('#table-1 tr[data-row="2"] td').nth(2).hover();
      await soon(async () => assert.match(await tip.textContent(), /range-covered-si.*inconclusive: no answer.*0\.9390 \[/));
      await page.locator('#table-1 tr[data-row="0"] td').first().focus();
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowDown');
      await soon(async () => assert.match(await tip.textContent(), /hot-points.*unfit/));
      await page.keyboard.press('ArrowRight');
      await soon(async () => assert.match(await tip.textContent(), /not measured/));
      await page.keyboard.press('Escape');
      await soon(async () => assert.equal(await tip.isVisible(), false));
    });
  });

  it('draws lines of workloads or of servers beside the linear growth', async () => {
    await on('study', {}, async (page) => {
      await page.locator('#clients-chart').scrollIntoViewIfNeeded();
      await page.waitForSelector('#clients-chart svg');
      const label = () => page.locator('#clients-chart').getAttribute('aria-label');
      await soon(async () => assert.match(await label(), /32 lines/));
      await page.selectOption('#lines-are', 'servers');
      await soon(async () => assert.match(await label(), /hot-points.* 3 lines/));
      await page.locator('#clients-chart svg text', { hasText: 'linear' }).first().waitFor();
      const kinds = await page.$$eval('#lines-figure option', (all) => all.map((one) => one.value));
      assert.deepEqual(kinds, ['ratio', 'efficiency', 'cpu', 'absolute']);
      for (const kind of kinds) {
        await page.selectOption('#lines-figure', kind);
        assert.match(await page.locator('#over-clients .note').textContent(), /Both axes start at 0/);
      }
    });
  });

  it('keeps the intervals of growth inside of their chart', async () => {
    for (const wide of [1.8, 30]) {
      const name = changed('study', 'study', ({ tables }) => {
        const rows = tables.filter((one) => one.axis === 'clients').flatMap((one) => one.rows);
        for (const [figure] of rows.flatMap((row) => row.figures).filter(Boolean)) if (figure?.[2]) figure[2] = wide * figure[0];
      });
      await on(name, {}, async (page) => {
        await page.locator('#clients-chart').scrollIntoViewIfNeeded();
        // A line that stands upright has no width, and so is not visible to the driver.
        await page.waitForSelector('#clients-chart svg path[stroke-width="1.2"]', { state: 'attached' });
        const tops = await page.$$eval('#clients-chart svg path[stroke-width="1.2"]', (all) => all.map((one) => one.getBBox().y));
        assert.ok(tops.length > 10 && Math.min(...tops) >= 51, `${wide}: ${Math.min(...tops)}`);
      });
    }
  });

  it('says where an axis does not start at 0', async () => {
    await on('study', {}, async (page) => {
      assert.match(await page.locator('#table-1 .bars-note').textContent(), /does not start at 0/);
      const storage = page.locator('article', { has: page.locator('[data-cost]') });
      assert.match(await storage.locator('.bars-note').textContent(), /axis start at 0/);
    });
  });

  it('is readable on a phone without scrolling sideways, names of rows stay', async () => {
    await on('study', { viewport: phone, deviceScaleFactor: 1, hasTouch: true, isMobile: true }, async (page) => {
      await throughAll(page);
      const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(inner <= outer, `${inner} > ${outer}`);
      const box = page.locator('#table-1 .heat-box');
      await box.evaluate((one) => (one.scrollLeft = 400));
      const left = await page.locator('#table-1 tr[data-row="0"] th').evaluate((one) => one.getBoundingClientRect().left);
      assert.ok(left >= 0 && left < 40, `${left}`);
      await picture(page, 'phone-study');
    });
  });

  it('fits a page of fifteen servers into a window, and prints all', async () => {
    await on('study', {}, async (page) => {
      const [table, box] = await page.locator('#table-1 .heat').evaluate((one) => [one.scrollWidth, one.parentElement.clientWidth]);
      assert.ok(table <= box, `${table} > ${box}`);
      await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
      await page.emulateMedia({ media: 'print' });
      assert.equal(await page.locator('article > details:not([open])').count(), 0);
      assert.equal(await page.locator('#filters').isVisible(), false);
      if (pictures) await page.pdf({ path: resolve(pictures, 'print-study.pdf'), format: 'A4', landscape: true, printBackground: true });
    });
  });

  it('holds no markup that came with the data', async () => {
    await on('study-evil', {}, async (page) => {
      await throughAll(page);
      await page.locator('#table-1 tr[data-row="0"] td').nth(1).hover();
      assert.equal(await page.locator('img').count(), 0);
      assert.ok((await rowsOf(page, 'table-1'))[0].includes('<img'));
    });
  });
});
