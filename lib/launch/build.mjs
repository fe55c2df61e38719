import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { buildFolder, PLACEHOLDER } from './build-folder.mjs';
import { isPacked } from './packed.mjs';
import { placeBuild } from './place-build.mjs';
import { root } from './root.mjs';
import { runProgram } from './run-program.mjs';
import { LaunchError, say } from './say.mjs';

/** All that goes into the build. The runner and the start-up code do not. */
const SOURCES = [
  ...['app', 'components', 'lib', 'db', 'public', 'proxy.ts', 'instrumentation.ts', 'next.config.ts'],
  ...['lib/launch/build-folder.mjs', 'postcss.config.mjs', 'tsconfig.json', 'package.json', 'package-lock.json'],
];
const NOT_SOURCES = new Set(['lib/runner', 'lib/launch']);

/**
 * Builds the dashboard unless the build is of exactly these sources. By content: a checkout gives files new times, and
 * a switch of branches gives old files.
 *
 * Beneath a path it is a build of its own, for any path, so that the one without stays as it is, and as small.
 *
 * @param {string} [basePath]
 */
export async function buildWhatIsOld(basePath = '') {
  if (isPacked) return requirePacked(basePath);
  const hash = sourcesHash();
  if (basePath === '') return await build('', hash);
  await build(PLACEHOLDER, hash);
  placeBuild(basePath, hash);
}

/**
 * @param {string} basePath
 * @param {string} hash of the sources
 */
async function build(basePath, hash) {
  const buildDir = join(root, buildFolder(basePath));
  const stampFile = join(buildDir, 'interlude-sources');
  if (existsSync(join(buildDir, 'BUILD_ID')) && readStamp(stampFile) === hash) return;
  say('Building the dashboard (next build) …');
  const next = join(root, 'node_modules', 'next', 'dist', 'bin', 'next');
  /** @type {NodeJS.ProcessEnv} */
  const env = { ...process.env, NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1', BASE_PATH_OF_BUILD: basePath };
  if (!(await runProgram(process.execPath, [next, 'build'], env))) {
    throw new LaunchError('next build failed; its output is above');
  }
  try {
    writeFileSync(stampFile, hash);
  } catch (error) {
    throw LaunchError.ofWriting(error, buildDir);
  }
}

/**
 * A packed copy has one build, with its path in it.
 *
 * @param {string} basePath
 */
function requirePacked(basePath) {
  if (existsSync(join(root, buildFolder(basePath), 'BUILD_ID'))) return;
  const which = basePath === '' ? 'beneath a path' : `not beneath ${basePath}`;
  throw new LaunchError(
    `this copy was packed to be ${which}; set INTERLUDE_BASE_PATH as when it was packed, or pack another one`,
  );
}

/** @param {string} stampFile */
function readStamp(stampFile) {
  try {
    return readFileSync(stampFile, 'utf8');
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
  // No page is made of documentation.
  if (NOT_SOURCES.has(name) || name.endsWith('.md') || !existsSync(path)) return;
  const entries = listing(path);
  if (entries) {
    for (const entry of entries) addTo(hash, join(path, entry));
    return;
  }
  const content = readFileSync(path);
  hash.update(`${name}\n${content.length}\n`).update(content);
}

/**
 * @param {string} path
 * @returns {string[] | null} null when it is a file
 */
function listing(path) {
  try {
    return readdirSync(path).sort();
  } catch {
    return null;
  }
}
