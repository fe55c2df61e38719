import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { displayPath, npmProgram } from '../host/own-program.mjs';
import { ProcessLock, ProcessLockedError } from '../host/process-lock';
import { printNotice } from './command';

export interface WantedPackage {
  name: string;
  /** The tested version. */
  version: string;
  /** The folder above its `node_modules`. */
  folder: string;
  /** True if Interlude owns the folder. Packages in other folders are not replaced. */
  isOwn: boolean;
  /** Name of the package in messages. */
  called: string;
}

export type Ensured<Loaded> =
  | { state: 'ready'; loaded: Loaded }
  /** `why` is one line with the next step. */
  | { state: 'missing'; why: string }
  | { state: 'interrupted' };

const LOCK_POLL_MS = 200;

/**
 * Loads a package that only one kind of agent needs, and installs it into its own folder once a person has agreed.
 *
 * Ordering: one process at a time installs into a folder; others wait and use the result.
 * Failure: an interrupted install does not count, and the next run starts over.
 *
 * @param load resolves to null if the package is missing or incomplete
 * @param agreed true to install without asking
 * @param signal cancels the installation
 */
export async function ensurePackage<Loaded>(
  wanted: WantedPackage,
  load: () => Promise<Loaded | null>,
  agreed: boolean,
  signal: AbortSignal,
): Promise<Ensured<Loaded>> {
  const loaded = await load();
  if (loaded !== null) return { state: 'ready', loaded };
  const { called, folder } = wanted;
  const missing = (what: string): Ensured<Loaded> => ({
    state: 'missing',
    why: `${what} run: ${installCommand(wanted)}`,
  });
  if (!wanted.isOwn && existsSync(join(folder, 'node_modules'))) return missing(`${called} is not installed;`);
  // Creates the folder with a private mode, because an npm run by hand would apply the umask.
  if (wanted.isOwn) await mkdir(folder, { recursive: true, mode: 0o700 });
  const isWanted =
    agreed || (isInteractive() && (await confirm(`Install ${wanted.name} into ${displayPath(folder)}?`, signal)));
  if (signal.aborted) return { state: 'interrupted' };
  if (!isWanted) return missing(`${called} is not installed;`);
  const trouble = await installExclusively(wanted, signal);
  if (signal.aborted) return { state: 'interrupted' };
  if (trouble !== null) return missing(`${called} was not installed: ${trouble}; fix that, then`);
  const fresh = await load();
  if (fresh !== null) return { state: 'ready', loaded: fresh };
  return missing(`${called} was installed but can't be loaded;`);
}

/** @returns null once it is installed, by this process or another one; else the error */
async function installExclusively(wanted: WantedPackage, signal: AbortSignal): Promise<string | null> {
  const { name, version, folder } = wanted;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const lock = await waitForLock(join(folder, LOCK), signal);
  if (lock === null) return null;
  try {
    if (lock.hasWaited && installedPackage(folder, name) !== null) return null;
    printNotice(`installing ${name} ${version} into ${displayPath(folder)}`);
    return await npmInstall(
      { spec: `${name}@${version}`, folder },
      (place) => installedPackage(place, name) !== null,
      signal,
    );
  } finally {
    await lock.release();
  }
}

const LOCK = '.install.lock';

/** @returns null if the signal ended the wait */
async function waitForLock(file: string, signal: AbortSignal) {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      const lock = await ProcessLock.acquire(file);
      return { hasWaited: tries > 0, release: () => lock.release() };
    } catch (error) {
      if (!(error instanceof ProcessLockedError)) throw error;
      if (tries === 0) printNotice(`waiting for process ${error.pid}, which is installing it`);
      await setTimeout(LOCK_POLL_MS, null, { signal }).catch(() => null);
    }
  }
  return null;
}

function installCommand({ name, version, folder }: WantedPackage): string {
  return ['npm', ...installArguments({ spec: `${name}@${version}`, folder })].map(shellWord).join(' ');
}

function isInteractive(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/**
 * Asks on the terminal. Enter means yes; the end of the input means no.
 *
 * @param signal answers no
 */
function confirm(question: string, signal: AbortSignal): Promise<boolean> {
  // Not a `terminal`, which would handle Ctrl-C itself.
  const lines = createInterface({ input: process.stdin, terminal: false });
  return new Promise((resolve) => {
    const ask = () => process.stderr.write(`${question} [Y/n] `);
    const answer = (agreed: boolean) => {
      signal.removeEventListener('abort', stop);
      lines.removeAllListeners();
      lines.close();
      resolve(agreed);
    };
    const stop = () => {
      process.stderr.write('\n');
      answer(false);
    };
    lines.on('line', (line) => {
      const reply = line.trim().toLowerCase();
      if (['', 'y', 'yes'].includes(reply)) answer(true);
      else if (['n', 'no'].includes(reply)) answer(false);
      else ask();
    });
    lines.once('close', stop);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    else ask();
  });
}

interface Install {
  /** `name@version` */
  spec: string;
  folder: string;
}

/** Package scripts don't run: none of the packages needs them. */
function installArguments({ spec, folder }: Install): string[] {
  return ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', spec];
}

const DRAFT = '.new-';
const OLD = '.old-';
/** Copied to the draft, so that npm keeps the packages that are already installed. */
const MANIFESTS = ['package.json', 'package-lock.json'];

/**
 * Installs a package into a folder, completely or not at all: npm works in a draft folder, whose `node_modules` then
 * replaces the old one in one step. The caller holds the lock of the folder.
 *
 * @param signal ends npm
 * @returns null when done; else the error. npm's own output went to stderr
 */
async function npmInstall(
  { spec, folder }: Install,
  isComplete: (folder: string) => boolean,
  signal: AbortSignal,
): Promise<string | null> {
  await removeDrafts(folder);
  const draft = await mkdtemp(join(folder, DRAFT));
  try {
    await copyManifests(folder, draft);
    const trouble = await runNpm(installArguments({ spec, folder: draft }), draft, signal);
    if (trouble !== null) return trouble;
    if (!isComplete(draft)) return `npm succeeded, but ${spec} is incomplete`;
    await replace(draft, folder);
    return null;
  } finally {
    await removeDrafts(folder);
  }
}

/** Without a manifest npm would derive the package's name from the folder, whose name is not valid. */
async function copyManifests(from: string, to: string): Promise<void> {
  await writeFile(join(to, 'package.json'), '{"private":true}\n');
  for (const name of MANIFESTS) await copyFile(join(from, name), join(to, name)).catch(() => undefined);
}

async function replace(draft: string, folder: string): Promise<void> {
  const packages = join(folder, 'node_modules');
  await rename(packages, await mkdtemp(join(folder, OLD))).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  for (const name of MANIFESTS) await rename(join(draft, name), join(folder, name)).catch(() => undefined);
  await rename(join(draft, 'node_modules'), packages);
}

/** Also removes drafts of a killed process. If its npm is still writing there, the next install removes them. */
async function removeDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(DRAFT) && !name.startsWith(OLD)) continue;
    await rm(join(folder, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
  }
}

function runNpm(args: string[], cwd: string, signal: AbortSignal): Promise<string | null> {
  const npm = npmProgram();
  const inherited = Object.entries(process.env).filter(([name]) => !QUIET.test(name));
  const env = Object.fromEntries(inherited) as NodeJS.ProcessEnv;
  return new Promise((resolve) => {
    // The files are private, like everything in the data directory. npm's output goes to stderr, because stdout is for
    // the command's own output.
    const mask = process.umask(0o077);
    const child: ChildProcess = spawn(npm.program, [...npm.args, ...args], { cwd, env, stdio: ['ignore', 2, 2] });
    process.umask(mask);
    const end = () => child.kill('SIGTERM');
    signal.addEventListener('abort', end, { once: true });
    const ended = (trouble: string | null) => {
      signal.removeEventListener('abort', end);
      resolve(trouble);
    };
    child.once('error', (error: NodeJS.ErrnoException) => {
      ended(error.code === 'ENOENT' ? 'npm is not installed' : `npm did not start (${error.code})`);
    });
    child.once('exit', (code, name) => ended(code === 0 ? null : `npm failed (${name ?? `exit ${code}`})`));
    if (signal.aborted) end();
  });
}

/** Set by `npm run -s`, which would silence the install. */
const QUIET = /^npm_config_(loglevel|progress)$/i;

/**
 * Resolves a package in the `node_modules` of one folder, without the folders above it that Node would search.
 *
 * @returns its main file; null if it is missing or incomplete
 */
export function installedPackage(folder: string, name: string): string | null {
  const packages = join(folder, 'node_modules');
  const home = join(packages, ...name.split('/'));
  const manifest = readJson<Manifest>(join(home, 'package.json'));
  if (manifest === null || !isRecorded(packages, name, manifest) || !hasPlatformPackage(packages, home, manifest)) {
    return null;
  }
  try {
    const file = createRequire(join(packages, 'package.json')).resolve(name);
    return isWithin(realpathSync(home), file) ? file : null;
  } catch {
    return null;
  }
}

interface Manifest {
  version?: string;
  optionalDependencies?: Record<string, string>;
}

/** True unless npm's record lacks the package, which npm lists once it is completely installed. */
function isRecorded(packages: string, name: string, { version }: Manifest): boolean {
  const record = readJson<{ packages?: Record<string, { version?: string }> }>(join(packages, '.package-lock.json'));
  if (record?.packages === undefined) return true;
  return record.packages[`node_modules/${name}`]?.version === version;
}

/** True unless the program for this platform is missing. Programs come as optional packages, one for each platform. */
function hasPlatformPackage(packages: string, home: string, { optionalDependencies = {} }: Manifest): boolean {
  const here = `-${process.platform}-${process.arch}`;
  const fitting = Object.keys(optionalDependencies).filter((name) => name.includes(here));
  const isThere = (name: string) =>
    [packages, join(home, 'node_modules'), join(realpathSync(home), '..', '..')].some((place) =>
      existsSync(join(place, ...name.split('/'), 'package.json')),
    );
  return fitting.length === 0 || fitting.some(isThere);
}

function readJson<Content>(file: string): Content | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Content;
  } catch {
    return null;
  }
}

/** True if a path is inside a folder once links are resolved. */
export function isWithin(folder: string, path: string): boolean {
  try {
    return realpathSync(path).startsWith(folder + sep);
  } catch {
    return false;
  }
}
