import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeStaleDrafts } from '../runner/host/data-folder.mjs';
import { runProgram } from './install.mjs';
import { LaunchError, printLine } from './launch-error.mjs';
import { buildFolder, isPacked, PLACEHOLDER, root } from './paths.mjs';

/** Inputs of the build, excluding the runner and start-up code. */
const SOURCES = [
  ...['app', 'components', 'lib', 'db', 'public', 'proxy.ts', 'instrumentation.ts', 'next.config.ts'],
  ...['lib/launch/paths.mjs', 'postcss.config.mjs', 'tsconfig.json', 'package.json', 'package-lock.json'],
];
const NOT_SOURCES = new Set(['lib/runner', 'lib/launch']);

/**
 * Builds the dashboard unless the existing build is from exactly these sources. Compares content, because checkouts
 * change file times and branch switches restore old files.
 *
 * With a base path, one placeholder build serves every path. The plain build stays unchanged.
 *
 * @param {string} [basePath]
 */
export async function buildIfStale(basePath = '') {
  if (isPacked) return requirePacked(basePath);
  const hash = sourcesHash();
  if (basePath === '') return await build('', hash);
  await build(PLACEHOLDER, hash);
  rebaseBuild(basePath, hash);
}

/**
 * @param {string} basePath
 * @param {string} hash of the sources
 */
async function build(basePath, hash) {
  const buildDir = join(root, buildFolder(basePath));
  const stampFile = join(buildDir, 'interlude-sources');
  if (existsSync(join(buildDir, 'BUILD_ID')) && readIfPresent(stampFile) === hash) return;
  printLine('Building the dashboard (next build) …');
  const next = join(root, 'node_modules', 'next', 'dist', 'bin', 'next');
  /** @type {NodeJS.ProcessEnv} */
  const env = { ...process.env, NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1', BASE_PATH_OF_BUILD: basePath };
  if (!(await runProgram(process.execPath, [next, 'build'], env))) {
    throw new LaunchError('next build failed; fix the errors above, then start again');
  }
  try {
    writeFileSync(stampFile, hash);
  } catch (error) {
    throw LaunchError.ofWriting(error, buildDir);
  }
}

/**
 * Refuses a base path other than the one a packed copy was built for.
 *
 * @param {string} basePath
 */
function requirePacked(basePath) {
  if (existsSync(join(root, buildFolder(basePath), 'BUILD_ID'))) return;
  const other = basePath === '' ? 'with a base path' : `without the base path ${basePath}`;
  throw new LaunchError(
    `this copy was packed ${other}; set INTERLUDE_BASE_PATH to its value at packing, or pack again`,
  );
}

/** @param {string} file */
function readIfPresent(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

function sourcesHash() {
  const hash = createHash('sha256');
  for (const source of SOURCES) addTo(hash, join(root, source));
  return hash.digest('hex');
}

/**
 * @param {import('node:crypto').Hash} hash
 * @param {string} path
 */
function addTo(hash, path) {
  const name = relative(root, path);
  // no page reads documentation
  if (NOT_SOURCES.has(name) || name.endsWith('.md') || !existsSync(path)) return;
  if (statSync(path).isDirectory()) {
    for (const entry of readdirSync(path).sort()) addTo(hash, join(path, entry));
    return;
  }
  const content = readFileSync(path);
  hash.update(`${name}\n${content.length}\n`).update(content);
}

/** Identifies the sources and the base path of a copied build. */
const STAMP = 'interlude-placed';
/** Entries that only the next build needs. */
const EXCLUDED = new Set(['cache', 'diagnostics', 'trace', 'trace-build', 'turbopack', 'types']);
const ANYWHERE = new RegExp(`(\\\\*)${PLACEHOLDER}`, 'g');

/**
 * Copies the placeholder build into a folder for one base path, unless that folder exists. Next bakes the base path into
 * code, manifests and patterns, so the copy replaces the placeholder in every file.
 *
 * Failure: the folder is complete or absent.
 *
 * @param {string} basePath
 * @param {string} sources hash of the build's sources
 */
function rebaseBuild(basePath, sources) {
  const from = join(root, buildFolder(PLACEHOLDER));
  const to = join(root, buildFolder(basePath));
  const stamp = createHash('sha256')
    .update(`${basePath}\n${sources}\n`)
    .update(readFileSync(fileURLToPath(import.meta.url)))
    .digest('hex');
  removeStaleDrafts(to);
  if (readIfPresent(join(to, STAMP)) === stamp) return;
  const draft = `${to}.${process.pid}`;
  try {
    rmSync(draft, { recursive: true, force: true });
    copy(from, draft, (text) => withBasePath(text, basePath), EXCLUDED);
    writeFileSync(join(draft, STAMP), stamp);
    // a concurrent start may have created this folder and be running from it
    if (readIfPresent(join(to, STAMP)) !== stamp) {
      rmSync(to, { recursive: true, force: true });
      renameSync(draft, to);
    }
  } catch (error) {
    if (readIfPresent(join(to, STAMP)) !== stamp) throw LaunchError.ofWriting(error, dirname(to));
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/**
 * @param {string} from
 * @param {string} to
 * @param {(text: string) => string} change
 * @param {Set<string>} [excluded]
 */
function copy(from, to, change, excluded = new Set()) {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (excluded.has(entry.name)) continue;
    if (entry.isDirectory()) copy(source, target, change);
    // a relative link to packages stays valid: both folders have the same depth
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else {
      const content = readFileSync(source);
      // copy binary files unchanged
      if (content.includes(PLACEHOLDER)) writeFileSync(target, change(content.toString()));
      else copyFileSync(source, target);
    }
  }
}

/**
 * Escapes the base path's slashes like those of the placeholder it replaces, in patterns and nested strings.
 *
 * @param {string} text
 * @param {string} basePath
 */
export function withBasePath(text, basePath) {
  return text
    .replaceAll(buildFolder(PLACEHOLDER), buildFolder(basePath))
    .replace(ANYWHERE, (_, backslashes) => basePath.replaceAll('/', `${backslashes}/`));
}
