// The page of a bisection in a real browser. Pages come from the report crate's tests; see scripts/test-web.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { on, phone, picture } from './browser.js';

describe('the page of a bisection', () => {
  it('leads from each mark to its look or culprit by the keyboard, without a script', async () => {
    await on('bisected', { javaScriptEnabled: false }, async (page) => {
      await picture(page, 'bisected', { fullPage: true });
      const marks = page.locator('.stairs a');
      assert.equal(await marks.count(), 8);
      assert.match(await marks.nth(2).getAttribute('aria-label'), /^culprit 1: .*\+4\.00/);
      await page.keyboard.press('Tab');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      // The browser follows a link in its own time.
      await page.waitForURL(/#look-60$/);
      await marks.nth(2).focus();
      await page.keyboard.press('Enter');
      await page.waitForURL(/#culprit-1$/);
    });
  });

  it('draws every mark inside of the chart, in the order of points', async () => {
    for (const viewport of [{ width: 1280, height: 900 }, phone]) {
      await on('bisected', { viewport }, async (page) => {
        const chart = await page.locator('.stairs > svg').boundingBox();
        const dots = await page.$$eval('.stairs a .around', (all) => all.map((one) => {
          const box = one.getBoundingClientRect();
          return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
        }));
        for (const dot of dots) {
          assert.ok(dot.x > chart.x && dot.x < chart.x + chart.width, JSON.stringify(dot));
          assert.ok(dot.y > chart.y && dot.y < chart.y + chart.height, JSON.stringify(dot));
        }
        const [base, end, culprit, before] = dots;
        assert.ok(base.x < before.x && before.x < culprit.x && culprit.x < end.x);
        assert.ok(culprit.y < end.y && end.y < base.y, 'more instructions are higher');
      });
    }
  });

  it('fits a phone: nothing but the table of looks is wider', async () => {
    await on('bisected', { viewport: phone }, async (page) => {
      await picture(page, 'bisected-phone', { fullPage: true });
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= phone.width);
      assert.ok(await page.$eval('#looks .scroll', (box) => box.scrollWidth > box.clientWidth));
    });
  });

  it('is readable in the dark and in print', async () => {
    await on('bisected', { colorScheme: 'dark' }, async (page) => {
      await picture(page, 'bisected-dark', { fullPage: true });
      const colour = (query, name) => page.$eval(query, (one, name) => getComputedStyle(one)[name], name);
      assert.equal(await colour('body', 'backgroundColor'), 'rgb(20, 23, 27)');
      assert.equal(await colour('.stairs .dot', 'fill'), 'rgb(195, 204, 214)');
    });
    await on('bisected', {}, async (page) => {
      await page.emulateMedia({ media: 'print' });
      await picture(page, 'bisected-print', { fullPage: true });
      assert.ok(await page.locator('.stairs > svg').isVisible());
      assert.ok(await page.locator('.culprit li').first().isVisible());
    });
  });
});
