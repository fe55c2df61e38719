/**
 * `node lib/launch/pack.mjs FOLDER`: copies the built dashboard with only the files that serving needs, for a container
 * or another machine of the same platform. Start the copy like the original: `node lib/launch/start.mjs`.
 *
 * Uses the file traces that every build writes instead of Next's `output: 'standalone'`, which adds its own server and
 * copies everything at each build.
 *
 * @see https://nextjs.org/docs/app/api-reference/config/next-config-js/output
 */
import { EventEmitter } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { basePathSetting } from '../protocol/base-path.mjs';
import { processState } from '../protocol/process-state.mjs';
import { buildIfStale } from './build.mjs';
import { exitWithError, LaunchError, printLine } from './launch-error.mjs';
import { buildFolder, packedConfig, READY, readyName, root } from './paths.mjs';

const PROGRAMS = ['lib/launch/start.mjs', 'lib/launch/interlude.mjs'];

/** TypeScript modules that these programs load. */
const TYPESCRIPT = [
  ...[
    'db/client.ts',
    'lib/runner/sources/found-agents.ts',
    'lib/server/maintenance/db.ts',
    'lib/conformance/command.ts',
  ],
  ...['main', 'runner', 'hooks', 'replay', 'demo', 'mcp', 'wait', 'outbox', 'sign-in', 'tokens'].map(
    (name) => `lib/runner/cli/${name}.ts`,
  ),
];

/** Native packages and their importers, which can't be bundled. */
export const NATIVE = ['libsql', '@libsql/client'];

/** Files of the image optimizer, which is disabled, and archives of the packages. */
const NEVER_LOADED = /^(node_modules\/(@img|sharp)|dist)\//;

/** Files that are read or run, not imported. */
export const RUNNER_FILES = ['lib/runner/hooks/hook.sh'];
const COPIED = [
  ...['package.json', 'public', 'db/migrations', 'lib/conformance/trivial-agent.mjs', 'lib/runner/cli/demo/recordings'],
  ...RUNNER_FILES,
];

/** Build files that only the next build or a developer reads. */
const UNUSED_BUILD_FILES = new Set([
  'cache',
  'dev',
  'diagnostics',
  'types',
  'build',
  'trace',
  'trace-build',
  'interlude-sources',
]);

/** Set when packing, from INTERLUDE_BASE_PATH. */
const BASE_PATH = basePathSetting(process.env.INTERLUDE_BASE_PATH);
const BUILD = join(root, buildFolder(BASE_PATH));

/** @param {string} folder empty or missing */
export async function packInto(folder) {
  await buildIfStale(BASE_PATH);
  const loaded = [...traced(), ...(await loadedByNext()), ...(await imported())];
  const files = new Set([...loaded.filter((file) => !NEVER_LOADED.test(file)), ...built(), ...COPIED]);
  mkdirSync(folder, { recursive: true });
  for (const file of files) {
    const target = join(folder, file);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(root, file), target, { recursive: true, verbatimSymlinks: true });
  }
  await compile(
    TYPESCRIPT.map((path) => ({ in: path, out: readyName(path) })),
    join(folder, relative(root, READY)),
  );
}

/** Files that built pages and Next's server load, from Next's traces. */
function traced() {
  const traces = walk(BUILD).filter((path) => path.endsWith('.nft.json'));
  return traces.flatMap((trace) => {
    /** @type {{ files: string[] }} */
    const { files } = JSON.parse(readFileSync(trace, 'utf8'));
    return files.map((file) => relative(root, join(dirname(trace), file)));
  });
}

/** Files that Next loads at start under a custom server, which the traces lack. */
async function loadedByNext() {
  Object.assign(process.env, { NODE_ENV: 'production', __NEXT_PRIVATE_STANDALONE_CONFIG: packedConfig(BASE_PATH) });
  // the server that Next creates responds to nothing, so its missing token is no error
  processState().isLaunched = true;
  const require = createRequire(join(root, 'package.json'));
  /** @type {(options: object) => import('next/dist/server/next').NextServer} */
  const next = require('next');
  await next({ dev: false, dir: root, hostname: 'localhost', port: 0, httpServer: new EventEmitter() }).prepare();
  return Object.keys(require.cache)
    .flatMap((path) => [path, manifestOf(path)])
    .map((path) => relative(root, path));
}

/**
 * The nearest package.json, which Node uses to resolve a folder.
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

/** The start-up code and the packages that it imports: plain JavaScript, copied unchanged. */
async function imported() {
  const { build } = await import('esbuild');
  const external = ['next', 'tsx', 'esbuild', ...NATIVE];
  const { metafile } = await build({ ...COMMON, entryPoints: PROGRAMS, external, write: false });
  const files = Object.keys(metafile.inputs);
  const manifests = files
    .filter((file) => file.startsWith('node_modules/'))
    .map((file) => manifestOf(join(root, file)));
  return [...files, ...manifests.map((file) => relative(root, file))];
}

/**
 * Bundles TypeScript into modules that share chunks.
 *
 * @param {{ in: string, out: string }[]} entryPoints
 * @param {string} folder directly below the root of the copy
 */
export async function compile(entryPoints, folder) {
  const { build } = await import('esbuild');
  await build({
    ...COMMON,
    entryPoints,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    splitting: true,
    external: NATIVE,
    banner: { js: BANNER },
    plugins: [{ name: 'own-address', setup: keepAddresses }],
  });
}

/** Bundled CommonJS packages call `require` for Node's modules. */
const BANNER = `import { createRequire as $requireFrom } from 'node:module';
const require = $requireFrom(import.meta.url);
const $addressOf = (path) => new URL('../' + path, import.meta.url).href;`;

/**
 * Keeps `import.meta.url` pointing at the original location.
 *
 * @param {import('esbuild').PluginBuild} build
 */
function keepAddresses({ onLoad }) {
  onLoad({ filter: /\.(ts|mjs)$/ }, async ({ path }) => {
    const name = relative(root, path);
    if (name.startsWith('node_modules')) return null;
    const text = await readFile(path, 'utf8');
    const contents = text.replaceAll('import.meta.url', `$addressOf(${JSON.stringify(name)})`);
    return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
  });
}

/** @satisfies {import('esbuild').BuildOptions & { metafile: true }} */
const COMMON = {
  absWorkingDir: root,
  alias: { '@': root },
  bundle: true,
  format: 'esm',
  // The CommonJS of some packages requires files by computed names.
  mainFields: ['module', 'main'],
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
    if (folder === BUILD && UNUSED_BUILD_FILES.has(entry.name)) return [];
    return entry.isDirectory() ? walk(path) : [path];
  });
}

async function pack() {
  const [argument] = process.argv.slice(2);
  if (argument === undefined) throw new LaunchError('name a folder to pack into: node lib/launch/pack.mjs FOLDER', 2);
  const folder = resolve(argument);
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new LaunchError(`${folder} is not empty; name an empty or new folder`, 2);
  }
  await packInto(folder);
  printLine(`Packed into ${folder}. Start it there with: node lib/launch/start.mjs`);
  // exit explicitly: Next keeps handles open
  process.exit();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) pack().catch(exitWithError);
