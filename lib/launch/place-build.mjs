import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeStaleDrafts } from '../runner/host/data-folder.mjs';
import { buildFolder, PLACEHOLDER } from './build-folder.mjs';
import { root } from './root.mjs';
import { LaunchError } from './say.mjs';

/** Next writes the path into code, manifests and patterns at build; here it is chosen at start. */

const STAMP = 'interlude-placed';
/** What only building needs. */
const LEFT_OUT = new Set(['cache', 'diagnostics', 'trace', 'trace-build', 'turbopack', 'types']);
const ANYWHERE = new RegExp(`(\\\\*)${PLACEHOLDER}`, 'g');

/**
 * Makes the build for one path out of that for any, in a folder of its own, unless it is there.
 *
 * Failure: a folder is there whole or not at all.
 *
 * @param {string} basePath
 * @param {string} sources what the build was made of
 */
export function placeBuild(basePath, sources) {
  const from = join(root, buildFolder(PLACEHOLDER));
  const to = join(root, buildFolder(basePath));
  const stamp = createHash('sha256')
    .update(`${basePath}\n${sources}\n`)
    .update(readFileSync(fileURLToPath(import.meta.url)))
    .digest('hex');
  removeStaleDrafts(to);
  if (stampIn(to) === stamp) return;
  const draft = `${to}.${process.pid}`;
  try {
    rmSync(draft, { recursive: true, force: true });
    copy(from, draft, (text) => withBasePath(text, basePath), LEFT_OUT);
    writeFileSync(join(draft, STAMP), stamp);
    // another may have started at the same time, and run from there by now
    if (stampIn(to) !== stamp) {
      rmSync(to, { recursive: true, force: true });
      renameSync(draft, to);
    }
  } catch (error) {
    if (stampIn(to) !== stamp) throw LaunchError.ofWriting(error, dirname(to));
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** @param {string} folder */
function stampIn(folder) {
  try {
    return readFileSync(join(folder, STAMP), 'utf8');
  } catch {
    return null;
  }
}

/**
 * @param {string} from
 * @param {string} to
 * @param {(text: string) => string} change
 * @param {Set<string>} [leftOut]
 */
function copy(from, to, change, leftOut = new Set()) {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (leftOut.has(entry.name)) continue;
    if (entry.isDirectory()) copy(source, target, change);
    // to packages, from a folder that is as deep
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else {
      const content = readFileSync(source);
      // of what is no text nothing is changed
      if (content.includes(PLACEHOLDER)) writeFileSync(target, change(content.toString()));
      else copyFileSync(source, target);
    }
  }
}

/**
 * In a pattern, and in a text that holds one, a slash has backslashes before it: what takes its place has as many.
 *
 * @param {string} text
 * @param {string} basePath
 */
export function withBasePath(text, basePath) {
  return text
    .replaceAll(buildFolder(PLACEHOLDER), buildFolder(basePath))
    .replace(ANYWHERE, (_, backslashes) => basePath.replaceAll('/', `${backslashes}/`));
}
