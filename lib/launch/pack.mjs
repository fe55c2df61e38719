/**
 * `node lib/launch/pack.mjs FOLDER`: a copy of the dashboard, built, with only what serving needs, for a container or
 * another machine of this kind. It starts as the original does: `node lib/launch/start.mjs`.
 *
 * It is made from the traces that every build leaves of what its server and its pages load, instead of by Next's
 * `output: 'standalone'`: that goes with a server of Next's own, and would copy all of it at every build.
 *
 * @see https://nextjs.org/docs/app/api-reference/config/next-config-js/output
 */
import { EventEmitter } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { basePathSetting } from '../protocol/base-path.mjs';
import { buildIfStale } from './build.mjs';
import { exitWithError, LaunchError, printLine } from './launch-error.mjs';
import { buildFolder, packedConfig, READY, readyName, root } from './paths.mjs';

const PROGRAMS = ['lib/launch/start.mjs', 'lib/launch/interlude.mjs'];

/** What these programs load that is TypeScript; of the commands those that look after a server. */
const TYPESCRIPT = [
  ...['db/client.ts', 'lib/runner/sources/found-agents.ts', 'lib/server/maintenance/db.ts'],
  ...['main', 'sign-in', 'tokens'].map((name) => `lib/runner/cli/${name}.ts`),
];

/** Packages with native code, and who loads them: they can't be compiled into a file. */
const AS_THEY_ARE = ['libsql', '@libsql/client'];

/** Traced because Next could need them, which for this dashboard it does not: its image service is off. */
const NEVER_LOADED = /^node_modules\/(@img|sharp)\//;

const AS_THEY_STAND = ['package.json', 'public', 'db/migrations'];

/** Of the build, what only the next build or a person reads. */
const NO_PART = new Set(['cache', 'dev', 'diagnostics', 'types', 'build', 'trace', 'trace-build', 'interlude-sources']);

/** It is beneath the path that INTERLUDE_BASE_PATH says as it is packed. */
const BASE_PATH = basePathSetting(process.env.INTERLUDE_BASE_PATH);
const BUILD = join(root, buildFolder(BASE_PATH));

async function pack() {
  const [given] = process.argv.slice(2);
  if (given === undefined) throw new LaunchError('which folder to pack into? node lib/launch/pack.mjs FOLDER', 2);
  const folder = resolve(given);
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new LaunchError(`${folder} is not empty; name a folder that is, or none yet`, 2);
  }
  await buildIfStale(BASE_PATH);
  const loaded = [...traced(), ...(await loadedByNext()), ...(await imported())];
  const files = new Set([...loaded.filter((file) => !NEVER_LOADED.test(file)), ...built(), ...AS_THEY_STAND]);
  mkdirSync(folder, { recursive: true });
  for (const file of files) {
    const target = join(folder, file);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(root, file), target, { recursive: true, verbatimSymlinks: true });
  }
  await compile(join(folder, relative(root, READY)));
  printLine(`Packed into ${folder}. Start it there: node lib/launch/start.mjs`);
  // what Next has begun meanwhile has no end
  process.exit();
}

/** What the built pages and Next's server load while they answer, as Next has traced it. */
function traced() {
  const traces = walk(BUILD).filter((path) => path.endsWith('.nft.json'));
  return traces.flatMap((trace) => {
    /** @type {{ files: string[] }} */
    const { files } = JSON.parse(readFileSync(trace, 'utf8'));
    return files.map((file) => relative(root, join(dirname(trace), file)));
  });
}

/** And what it loads as it starts below a server of ours, which it has no trace of. */
async function loadedByNext() {
  Object.assign(process.env, { NODE_ENV: 'production', __NEXT_PRIVATE_STANDALONE_CONFIG: packedConfig(BASE_PATH) });
  const require = createRequire(join(root, 'package.json'));
  /** @type {(options: object) => import('next/dist/server/next').NextServer} */
  const next = require('next');
  await next({ dev: false, dir: root, hostname: 'localhost', port: 0, httpServer: new EventEmitter() }).prepare();
  return Object.keys(require.cache)
    .flatMap((path) => [path, manifestOf(path)])
    .map((path) => relative(root, path));
}

/**
 * The nearest package.json, which says what a folder's name stands for.
 *
 * @param {string} path
 * @returns {string}
 */
function manifestOf(path) {
  const manifest = join(dirname(path), 'package.json');
  return existsSync(manifest) ? manifest : manifestOf(dirname(path));
}

function built() {
  return walk(BUILD)
    .filter((path) => !path.endsWith('.nft.json') && extname(path) !== '.map')
    .map((path) => relative(root, path));
}

/** The start-up code, which is plain JavaScript and stays as it is. */
async function imported() {
  const { build } = await import('esbuild');
  const { metafile } = await build({ ...COMMON, entryPoints: PROGRAMS, packages: 'external', write: false });
  return Object.keys(metafile.inputs);
}

/** @param {string} folder */
async function compile(folder) {
  const { build } = await import('esbuild');
  await build({
    ...COMMON,
    entryPoints: TYPESCRIPT.map((path) => ({ in: path, out: readyName(path) })),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    splitting: true,
    external: AS_THEY_ARE,
    banner: { js: BANNER },
    plugins: [{ name: 'own-address', setup: keepAddresses }],
  });
}

/** Packages that are not ES modules ask for Node's with `require`. Each of the files lies in `ready`. */
const BANNER = `import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const addressOf = (path) => new URL('../' + path, import.meta.url).href;`;

/**
 * What a file finds from where it stands it must find from where it stood.
 *
 * @param {import('esbuild').PluginBuild} build
 */
function keepAddresses({ onLoad }) {
  onLoad({ filter: /\.(ts|mjs)$/ }, async ({ path }) => {
    const name = relative(root, path);
    if (name.startsWith('node_modules')) return null;
    const text = await readFile(path, 'utf8');
    const contents = text.replaceAll('import.meta.url', `addressOf(${JSON.stringify(name)})`);
    return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
  });
}

/** @satisfies {import('esbuild').BuildOptions & { metafile: true }} */
const COMMON = {
  absWorkingDir: root,
  alias: { '@': root },
  bundle: true,
  format: 'esm',
  metafile: true,
  outdir: 'none',
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
};

/**
 * @param {string} folder
 * @returns {string[]} files
 */
function walk(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (folder === BUILD && NO_PART.has(entry.name)) return [];
    return entry.isDirectory() ? walk(path) : [path];
  });
}

pack().catch(exitWithError);
