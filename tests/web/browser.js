// A browser for the tests of the pages, and what they all do with it.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { chromium } from 'playwright-core';

const pages = process.env.DELTABENCH_PAGES;
const program = process.env.DELTABENCH_CHROMIUM ?? '/usr/bin/chromium';
export const pictures = process.env.DELTABENCH_PICTURES;
const address = (name) => `file://${resolve(pages, `${name}.html`)}`;
const desktop = { width: 1280, height: 900 };
export const phone = { width: 390, height: 844 };

let browser;
before(async () => {
  // Machines of tests have no graphics; a window that counts as hidden draws no frames.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-renderer-backgrounding', '--disable-backgrounding-occluded-windows'];
  browser = await chromium.launch({ executablePath: program, args });
  if (pictures) mkdirSync(pictures, { recursive: true });
});
after(() => browser?.close());

/** Opens a page and calls back with it; afterwards nothing may have gone wrong or left the machine. */
export const on = (name, options, test) => browsed(address(name), options, test);

/** The same at an address of this machine. */
export async function browsed(address, options, test) {
  const context = await browser.newContext({ viewport: desktop, ...options });
  const page = await context.newPage();
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
    // A frame to see what came into view, one to draw it; a browser that draws none is waited for no longer than this.
    await page.evaluate(() => new Promise((done) => {
      setTimeout(done, 200);
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 15)));
    }));
  }
  await page.evaluate(() => window.scrollTo({ top: 0, behavior: 'instant' }));
}
