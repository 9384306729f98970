// A browser for the tests of the pages, and what they all do with it.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { chromium } from 'playwright-core';

const pages = process.env.DELTABENCH_PAGES;
const program = process.env.DELTABENCH_CHROMIUM ?? '/usr/bin/chromium';
export const pictures = process.env.DELTABENCH_PICTURES;
const address = (name) => `file://${resolve(pages, `${name}.html`)}`;
const desktop = { width: 1280, height: 900 };
export const phone = { width: 390, height: 844 };

// The tests of servers keep the machine busy meanwhile: a browser started in 26 seconds there, and Playwright gives up after 30.
const patience = 180_000;

let browser;
before(async () => {
  // Machines of tests have no graphics; a window that counts as hidden draws no frames.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-renderer-backgrounding', '--disable-backgrounding-occluded-windows'];
  browser = await chromium.launch({ executablePath: program, args, timeout: patience });
  if (pictures) mkdirSync(pictures, { recursive: true });
});
after(() => browser?.close());

/** The name of a copy of a page whose data, the script of that identifier, are changed. */
export function changed(name, script, change) {
  const [page, copy] = [`${name}.html`, `${name}-changed`];
  const text = readFileSync(resolve(pages, page), 'utf8');
  const [, begin, json] = text.match(new RegExp(`(<script[^>]* id="?${script}"?[^>]*>)([^<]*)`));
  const data = JSON.parse(json);
  change(data);
  const written = JSON.stringify(data).replaceAll('<', '\\u003c');
  writeFileSync(resolve(pages, `${copy}.html`), text.replace(begin + json, () => begin + written));
  return copy;
}

/** Repeats a check until it holds: a chart follows what was done in the browser's next frame, which a busy machine draws late. */
export async function soon(check) {
  const end = Date.now() + 20_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((later) => setTimeout(later, 50));
    }
  }
}

/** Opens a page and calls back with it; afterwards nothing may have gone wrong or left the machine. */
export const on = (name, options, test) => browsed(address(name), options, test);

/** The same at an address of this machine. */
export async function browsed(address, options, test) {
  const context = await browser.newContext({ viewport: desktop, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  const wrong = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && wrong.push(message.text()));
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('request', (request) => {
    if (!/^(file|data|blob):/.test(request.url()) && !request.url().startsWith(new URL(address).origin)) wrong.push(`request: ${request.url()}`);
  });
  try {
    await page.goto(address);
    await test(page);
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
  }
}

export const picture = async (page, name, more) => pictures && page.screenshot({ path: resolve(pictures, `${name}.png`), ...more });

/** Goes through the page so that all that waits to be seen is drawn. */
export async function throughAll(page) {
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let top = 0; top < height; top += 700) {
    await page.evaluate((y) => window.scrollTo({ top: y, behavior: 'instant' }), top);
    // What came into view draws itself in the next frames. What never does is found by the test.
    await page.evaluate(() => new Promise((done) => {
      const end = performance.now() + 5000;
      const blank = (chart) => {
        const { top, bottom, height } = chart.getBoundingClientRect();
        return height > 0 && bottom > 0 && top < innerHeight && chart.checkVisibility() && !chart.querySelector('svg');
      };
      const look = () => {
        const all = [...document.querySelectorAll('.chart')];
        if (performance.now() > end || !all.some(blank)) done();
        else setTimeout(look, 15);
      };
      look();
    }));
  }
  await page.evaluate(() => window.scrollTo({ top: 0, behavior: 'instant' }));
}
