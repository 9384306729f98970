// The report page in a real browser. Pages come from the report crate's tests; see scripts/test-web.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resolve } from 'node:path';
import { changed, on, phone, picture, pictures, soon, throughAll } from './browser.js';

const forestNames = (page) =>
  page.$$eval('#forest-chart svg text', (all) => all.map((one) => one.textContent).filter((name) => /, \d+ clients?/.test(name)));
const tableNames = (page) =>
  page.$$eval('.numbers tbody tr:not([hidden]) th a', (all) => all.map((one) => one.textContent));

/** The page's place of an element of a chart, to click on it. */
async function textIn(page, chart, words) {
  return page.locator(`${chart} svg text`, { hasText: words }).first();
}

describe('the report page', () => {
  it('opens without errors and without asking the network, and draws every chart', async () => {
    await on('rich', {}, async (page) => {
      await throughAll(page);
      const charts = await page.$$eval('.chart', (all) =>
        all.filter((one) => one.checkVisibility()).map((one) => ({ id: one.id, shapes: one.querySelectorAll('svg path, svg text').length })));
      assert.ok(charts.length > 20, `${charts.length} charts`);
      for (const { id, shapes } of charts) assert.ok(shapes > 5, `${id} has ${shapes} shapes`);
      assert.equal(await page.locator('.static').first().isVisible(), false);
      await picture(page, 'desktop', { fullPage: true });
    });
  });

  it('draws where instructions went, and is led by the keyboard and by a name', async () => {
    await on('explained', {}, async (page) => {
      const chart = page.locator('#flame-1');
      await chart.scrollIntoViewIfNeeded();
      await page.waitForSelector('#flame-1 svg');
      const frames = async () => Number((await chart.getAttribute('aria-label')).match(/(\d+) frames/)[1]);
      const whole = await frames();
      assert.ok(whole > 200, `${whole} frames`);
      const said = () => page.locator('.flame .said').textContent();
      await chart.focus();
      await page.keyboard.press('ArrowDown');
      await soon(async () => assert.match(await said(), /^\w+: \d+ → \d+ instructions, [+−]/));
      await page.keyboard.press('Enter');
      await soon(async () => assert.ok(await frames() < whole));
      await page.keyboard.press('Escape');
      await soon(async () => assert.equal(await frames(), whole));
      await page.selectOption('[data-widths]', 'difference');
      await page.fill('[data-find]', 'LWLock');
      await soon(async () => assert.match(await said(), /frames match .*own instructions: \+108$/));
      const [file] = await Promise.all([page.waitForEvent('download'), page.click('[data-file=folded]')]);
      assert.match(file.suggestedFilename(), /\.folded$/);
      await picture(page, 'explained');
    });
  });

  it('draws where instructions went on a page of counts alone', async () => {
    await on('counted', {}, async (page) => {
      await page.locator('#flame-1').scrollIntoViewIfNeeded();
      await page.waitForSelector('#flame-1 svg');
    });
  });

  it('shows sentence, table, forest, findings and provenance without a script', async () => {
    await on('rich', { javaScriptEnabled: false }, async (page) => {
      assert.match(await page.locator('h1').first().textContent(), /slower/);
      for (const place of ['table.forest >> nth=0', 'table.numbers', '#findings', '#provenance', '.banner', '.changes >> nth=0']) {
        assert.ok(await page.locator(place).isVisible(), place);
      }
      assert.equal(await page.locator('.scripted:visible').count(), 0);
      await picture(page, 'without-script', { fullPage: true });
    });
  });

  it('hides and shows a series by a click on its name in the legend', async () => {
    await on('rich', {}, async (page) => {
      const chart = page.locator('#host-0');
      await chart.scrollIntoViewIfNeeded();
      await page.waitForSelector('#host-0 svg');
      const drawn = () => page.$$eval('#host-0 svg path', (all) => all.filter((one) => (one.getAttribute('d') ?? '').length > 2000).length);
      const before = await soon(async () => {
        const lines = await drawn();
        assert.ok(lines >= 4, `${lines} long lines`);
        return lines;
      });
      const name = await textIn(page, '#host-0', 'cpu user');
      await name.click();
      await page.waitForFunction((wanted) => [...document.querySelectorAll('#host-0 svg path')].filter((one) => (one.getAttribute('d') ?? '').length > 2000).length === wanted, before - 1);
      await name.click();
      await page.waitForFunction((wanted) => [...document.querySelectorAll('#host-0 svg path')].filter((one) => (one.getAttribute('d') ?? '').length > 2000).length === wanted, before);
    });
  });

  it('says what every shown series of the host is at the moment under the pointer', async () => {
    await on('rich', {}, async (page) => {
      await page.locator('#host-0').scrollIntoViewIfNeeded();
      await page.waitForSelector('#host-0 svg');
      await (await textIn(page, '#host-0', 'cpu system')).click();
      const box = await page.locator('#host-0').boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await page.waitForFunction(() => /cpu user[\d.]+ %cpu iowait[\d.]+ %cpu steal/.test(document.querySelector('#host-0 .tip')?.textContent ?? ''));
    });
  });

  it('zooms all charts of the host together', async () => {
    await on('rich', {}, async (page) => {
      await page.locator('#host-1').scrollIntoViewIfNeeded();
      await Promise.all(['#host-0 svg', '#host-1 svg'].map((chart) => page.waitForSelector(chart)));
      const ticks = (id) => page.$$eval(`#${id} svg text`, (all) => all.map((one) => one.textContent).filter((tick) => /^\d\d:\d\d/.test(tick)).join(' '));
      const [first, second] = [await ticks('host-0'), await ticks('host-1')];
      const box = await page.locator('#host-0').boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await page.keyboard.down('Control');
      for (let turn = 0; turn < 8; turn += 1) await page.mouse.wheel(0, -200);
      await page.keyboard.up('Control');
      await soon(async () => {
        assert.notEqual(await ticks('host-0'), first);
        assert.notEqual(await ticks('host-1'), second);
      });
    });
  });

  it('filters forest, table and cards alike by text, group and verdict', async () => {
    await on('rich', {}, async (page) => {
      const all = (await tableNames(page)).length;
      await soon(async () => assert.equal((await forestNames(page)).length, all));
      const same = (wanted) => soon(async () => {
        const [table, forest] = [await tableNames(page), await forestNames(page)];
        const cards = await page.locator('article:not([hidden])').count();
        assert.deepEqual([table.length, forest.length, cards], [wanted, wanted, wanted]);
      });
      await page.fill('#find', 'range-');
      await same(4);
      assert.match(await page.locator('#shown').textContent(), /4 of 16/);
      await page.fill('#find', '');
      await page.selectOption('#group', 'point');
      await same(6);
      await page.selectOption('#group', '');
      await page.locator('#verdicts input[value="no-change"]').uncheck();
      const open = await page.$$eval('.numbers tbody tr:not([hidden]) td b', (cells) => cells.map((cell) => cell.textContent));
      assert.ok(open.length > 0 && open.every((words) => !words.includes('no change')));
      await same(open.length);
      await page.selectOption('#candidate', { label: 'path:/opt/patched' });
      assert.deepEqual(await tableNames(page), ['read-only-sum 1 client']);
    });
  });

  it('sorts the table by a click and by the keyboard, and says so', async () => {
    await on('rich', {}, async (page) => {
      const planned = await tableNames(page);
      const head = page.locator('.numbers th[data-sort="name"]');
      await head.locator('button').click();
      assert.equal(await head.getAttribute('aria-sort'), 'ascending');
      const rising = await tableNames(page);
      assert.deepEqual(rising.map((name) => name.replace(/ \d+ client.*/, '')), planned.map((name) => name.replace(/ \d+ client.*/, '')).sort());
      const throughput = page.locator('.numbers th[data-sort="throughput"]');
      await throughput.locator('button').focus();
      await page.keyboard.press('Enter');
      assert.equal(await head.getAttribute('aria-sort'), null);
      assert.equal(await throughput.getAttribute('aria-sort'), 'ascending');
      assert.match((await tableNames(page))[0], /range-covered-si/);
      await page.keyboard.press('Space');
      assert.equal(await throughput.getAttribute('aria-sort'), 'descending');
      assert.match((await tableNames(page))[0], /read-only-sum/);
      await page.keyboard.press('Enter');
      assert.deepEqual(await tableNames(page), planned);
    });
  });

  it('orders the forest by effect, name and verdict, and shows other metrics', async () => {
    await on('rich', {}, async (page) => {
      await page.selectOption('#order', 'effect');
      await soon(async () => assert.match((await forestNames(page))[0], /range-covered-si/));
      await page.selectOption('#order', 'name');
      await soon(async () => {
        const names = (await forestNames(page)).map((name) => name.replace(/ on .*/, ''));
        assert.deepEqual(names, [...names].sort((a, b) => a.localeCompare(b, 'en', { numeric: true })));
      });
      await page.selectOption('#order', 'verdict');
      await soon(async () => assert.match((await forestNames(page))[0], /range-covered-si/));
      const note = () => page.locator('#forest-note').textContent();
      for (const metric of ['CPU/op', 'latency p50', 'latency p99']) {
        await page.selectOption('#metric', { label: metric });
        assert.ok((await note()).startsWith(metric));
      }
      const costs = await page.$$eval('#metric optgroup option', (all) => all.map((one) => one.value));
      assert.ok(costs.length > 30, `${costs.length} costs`);
      await page.selectOption('#metric', costs[5]);
      assert.match(await note(), /does not start at 0/);
    });
  });

  it('marks a placebo whose interval goes on beyond the axis', async () => {
    const arrows = (page) => page.locator('#forest-chart svg path[fill="none"][stroke="var(--muted)"]').count();
    await on('rich', {}, async (page) => {
      await page.waitForSelector('#forest-chart svg');
      assert.equal(await arrows(page), 0);
    });
    const wide = changed('rich', 'data', ({ cells }) => cells.forEach(({ placebo: [throughput] }) => throughput && (throughput[2] = 9)));
    await on(wide, {}, async (page) => {
      await page.waitForSelector('#forest-chart svg');
      assert.ok((await arrows(page)) > 5);
    });
  });

  it('has no line wider than a phone, however long a name or a finding is', async () => {
    await on('rich', { viewport: phone }, async (page) => {
      await page.$$eval('details', (all) => all.forEach((one) => (one.open = true)));
      const long = await page.$$eval('h1, h2, h3, .findings li, .muted .nowrap', (all) => all.map((one) => one.append('_'.repeat(200))).length);
      assert.ok(long > 2);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= phone.width, `${width} wide`);
    });
  });

  it('leads from a row of the forest to the opened card', async () => {
    await on('rich', {}, async (page) => {
      assert.equal(await page.locator('#cell-7-2 details').first().getAttribute('open'), null);
      await (await textIn(page, '#forest-chart', 'update-index')).click();
      await page.waitForFunction(() => location.hash === '#cell-7-2');
      assert.notEqual(await page.locator('#cell-7-2 > details').getAttribute('open'), null);
      await page.waitForFunction(() => document.querySelector('#cell-7-2').getBoundingClientRect().top < innerHeight);
      await page.waitForSelector('#cell-7-2 .chart svg');
      await page.locator('#cell-7-2 .costs-of summary').click();
      await page.waitForSelector('#cell-7-2 table.costs');
      assert.ok((await page.locator('#cell-7-2 table.costs tbody tr').count()) > 30);
    });
  });

  it('shows exact values over a row, at the focus, and of each round', async () => {
    await on('rich', {}, async (page) => {
      const tip = page.locator('.floating');
      await page.locator('.numbers tbody tr').nth(3).hover();
      await soon(async () => assert.match(await tip.textContent(), /ratio \[95 %\]/));
      await page.locator('.numbers th[data-sort="errors"] button').focus();
      await page.keyboard.press('Tab');
      await soon(async () => assert.match(await tip.textContent(), /point-query, 1 client/));
      await page.keyboard.press('Escape');
      await soon(async () => assert.equal(await tip.isVisible(), false));
      const strip = page.locator('#cell-4-2 svg.rounds').first();
      await strip.scrollIntoViewIfNeeded();
      await strip.hover();
      await soon(async () => assert.match(await tip.textContent(), /block \d+.*round \d+[+−]\d/));
    });
  });

  it('saves a chart as a picture', async () => {
    await on('rich', {}, async (page) => {
      const waiting = page.waitForEvent('download');
      await page.locator('[data-save="forest-chart"]').click();
      const download = await waiting;
      assert.equal(download.suggestedFilename(), 'forest-chart.png');
      const path = await download.path();
      const { readFileSync } = await import('node:fs');
      const bytes = readFileSync(path);
      assert.deepEqual([...bytes.subarray(1, 4)], [...Buffer.from('PNG')]);
      assert.ok(bytes.length > 20_000, `${bytes.length} bytes`);
      if (pictures) await download.saveAs(resolve(pictures, 'saved-forest.png'));
    });
  });

  it('is readable on a phone without scrolling sideways', async () => {
    for (const name of ['rich', 'full', 'large', 'rocksdb']) {
      await on(name, { viewport: phone, deviceScaleFactor: 1, hasTouch: true, isMobile: true }, async (page) => {
        if (name !== 'large') await throughAll(page);
        const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(inner <= outer, `${name}: ${inner} > ${outer}`);
        await picture(page, `phone-${name}`, { fullPage: name !== 'large' });
      });
    }
  });

  it('says threads for RocksDB, and draws the turns of its steps', async () => {
    await on('rocksdb', {}, async (page) => {
      await throughAll(page);
      const names = await page.$$eval('#forest-chart svg text', (all) =>
        all.map((one) => one.textContent).filter((name) => /, \d+ threads?/.test(name)));
      // Nine steps on three candidates.
      assert.equal(names.length, 27);
      assert.equal(await page.locator('#rocksdb table:visible').count(), 3);
      const text = await page.locator('main').innerText();
      assert.doesNotMatch(text, /client|connection|statement|postgres/i);
      await page.locator('#rocksdb details').last().locator('summary').click();
      assert.equal(await page.locator('#rocksdb details[open] svg:visible').count(), 4);
      await picture(page, 'rocksdb', { fullPage: true });
    });
  });

  it('has readable colours in the dark', async () => {
    await on('rich', { colorScheme: 'dark' }, async (page) => {
      await throughAll(page);
      const [body, words] = await page.evaluate(() => [
        getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('#forest-chart svg text')).fill,
      ]);
      const light = (rgb) => rgb.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
      assert.ok(light(body) < 60 && light(words) > 110, `${body} ${words}`);
      await picture(page, 'dark', { fullPage: true });
    });
  });

  it('prints with all cards open and drawn, without controls', async () => {
    await on('rich', {}, async (page) => {
      await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
      await page.emulateMedia({ media: 'print' });
      const closed = await page.locator('article > details:not([open])').count();
      const empty = await page.$$eval('.chart', (all) => all.filter((one) => !one.querySelector('svg')).length);
      // The static forest prints: its rows can part between pages.
      assert.ok(await page.locator('table.forest').first().isVisible());
      assert.deepEqual([closed, empty], [0, 0]);
      assert.equal(await page.locator('#filters').isVisible(), false);
      if (pictures) await page.pdf({ path: resolve(pictures, 'print.pdf'), format: 'A4', printBackground: true });
      await page.evaluate(() => dispatchEvent(new Event('afterprint')));
      assert.ok((await page.locator('article > details:not([open])').count()) > 0);
    });
  });

  it('holds no markup that came with the data', async () => {
    await on('evil', {}, async (page) => {
      await throughAll(page);
      await page.locator('.numbers tbody tr').first().hover();
      assert.equal(await page.locator('img').count(), 0);
      assert.ok((await tableNames(page))[0].includes('<img'));
    });
  });

  it('opens for a run that has not measured anything', async () => {
    for (const name of ['started', 'nothing']) {
      await on(name, {}, async (page) => {
        await throughAll(page);
        await soon(async () => assert.equal((await forestNames(page)).length, (await tableNames(page)).length));
      });
    }
  });

  it('opens a hundred cells with an hour of seconds', async (test) => {
    await on('large', {}, async (page) => {
      const times = await page.evaluate(() => {
        const [navigation] = performance.getEntriesByType('navigation');
        return { ready: navigation.domContentLoadedEventEnd, loaded: navigation.loadEventEnd };
      });
      await soon(async () => assert.equal((await forestNames(page)).length, 100));
      assert.equal((await tableNames(page)).length, 100);
      // Not a gate: machines differ.
      test.diagnostic(`100 cells and an hour of series: ready after ${Math.round(times.ready)} ms, loaded after ${Math.round(times.loaded)} ms`);
      const start = Date.now();
      await page.locator('#host-0').scrollIntoViewIfNeeded();
      await page.waitForSelector('#host-0 svg');
      test.diagnostic(`the first charts of its series are drawn ${Date.now() - start} ms after they come into view`);
      await picture(page, 'large');
    });
  });
});
