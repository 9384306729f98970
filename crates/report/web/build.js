// Bundles src/ into dist/report.js, the same bytes for the same sources and lock file, and writes its hash and
// the licences of what is in it. Run by `cargo xtask web`.

import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const dist = process.argv[2] ?? join(here, 'dist');
const read = (path) => readFile(join(here, path), 'utf8');
const version = async (name) => JSON.parse(await read(`node_modules/${name}/package.json`)).version;

const notice = (await read('node_modules/echarts/NOTICE')).trim();
const [zrender, d3, tslib] = await Promise.all([
  read('node_modules/zrender/LICENSE'),
  read('node_modules/echarts/licenses/LICENSE-d3'),
  version('tslib'),
]);
const banner = `/*!
deltabench's report page, Apache-2.0. It contains:
- Apache ECharts ${await version('echarts')}, Apache-2.0 (https://www.apache.org/licenses/LICENSE-2.0), with parts of d3 (BSD 3-Clause);
- zrender ${await version('zrender')}, BSD 3-Clause; tslib ${tslib}, 0BSD.

${notice}

zrender: ${zrender.trim()}

d3: ${d3.trim()}
*/`.replaceAll('*/', '* /').replace(/\* \/$/, '*/');

const { outputFiles } = await build({
  absWorkingDir: here,
  entryPoints: ['src/main.js'],
  bundle: true,
  minify: true,
  format: 'iife',
  // Optional chaining and class fields: every browser since 2022.
  target: ['es2022'],
  charset: 'utf8',
  legalComments: 'none',
  define: { 'process.env.NODE_ENV': '"production"' },
  banner: { js: banner },
  write: false,
});
const script = outputFiles[0].text;
if (/<\/script|<!--/i.test(script)) throw new Error('the bundle would end its own script element');
await mkdir(dist, { recursive: true });
await writeFile(join(dist, 'report.js'), script);
await writeFile(join(dist, 'report.sha256'), `${createHash('sha256').update(script).digest('base64')}\n`);
await writeFile(join(dist, 'LICENSES.txt'), [
  'Licences of what dist/report.js contains.',
  `== Apache ECharts ==\n\n${await read('node_modules/echarts/LICENSE')}`,
  `== NOTICE of Apache ECharts ==\n\n${notice}`,
  `== d3, in Apache ECharts ==\n\n${d3.trim()}`,
  `== zrender ==\n\n${zrender.trim()}`,
  `== tslib ==\n\n${(await read('node_modules/tslib/LICENSE.txt')).trim()}`,
].map((part) => part.trim()).join('\n\n').concat('\n'));
console.log(`report.js: ${Math.ceil(Buffer.byteLength(script) / 1000)} kB`);
