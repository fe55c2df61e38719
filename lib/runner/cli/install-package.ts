import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { npmProgram, shownPath } from '../host/own-program.mjs';
import { ProcessLock, ProcessLockedError } from '../host/process-lock';
import { say } from './command';

/**
 * A package that is needed only for one kind of agent. It is installed into a folder of its own, once the person who
 * wants it has agreed.
 *
 * Ordering: one process installs into a folder at a time; the others wait for it, and use what it has made.
 * Failure: an install that was cut short counts as none, and the next run starts over.
 */
export interface WantedPackage {
  name: string;
  /** The one everything here was measured against. */
  version: string;
  /** The folder whose `node_modules` has it. */
  folder: string;
  /** Whether that is Interlude's own: what is in another one is not replaced. */
  isOwn: boolean;
  /** What people call it. */
  called: string;
}

export type Ensured<Loaded> =
  | { state: 'ready'; loaded: Loaded }
  /** `why` is one line that says what to do next. */
  | { state: 'missing'; why: string }
  | { state: 'interrupted' };

/** How often a waiting process checks whether the other one has ended. */
const LOOK_MS = 200;

/**
 * @param load null if the package is not there, or not all of it
 * @param agreed whether it may be installed without asking
 * @param signal somebody wants an end
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
  const missing = (what: string): Ensured<Loaded> => ({ state: 'missing', why: `${what} run: ${byHand(wanted)}` });
  if (!wanted.isOwn && existsSync(join(folder, 'node_modules'))) return missing(`${called} is not installed;`);
  // Made here, so that whoever follows the line, with whatever umask, does not make it for others as well.
  if (wanted.isOwn) await mkdir(folder, { recursive: true, mode: 0o700 });
  const isWanted =
    agreed || (canAsk() && (await isAgreed(`Install ${wanted.name} into ${shownPath(folder)}?`, signal)));
  if (signal.aborted) return { state: 'interrupted' };
  if (!isWanted) return missing(`${called} is not installed;`);
  const trouble = await installAlone(wanted, signal);
  if (signal.aborted) return { state: 'interrupted' };
  if (trouble !== null) return missing(`${called} was not installed: ${trouble}; mend that, then`);
  const fresh = await load();
  if (fresh !== null) return { state: 'ready', loaded: fresh };
  return missing(`${called} can't be loaded, though it was installed just now;`);
}

/** @returns null when it is installed, by us or by the one that was at it */
async function installAlone(wanted: WantedPackage, signal: AbortSignal): Promise<string | null> {
  const { name, version, folder } = wanted;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const lock = await lockWhenFree(join(folder, LOCK), signal);
  if (lock === null) return null;
  try {
    if (lock.hasWaited && installedPackage(folder, name) !== null) return null;
    say(`installing ${name} ${version} into ${shownPath(folder)}`);
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

/** @returns null when it was not waited for to the end */
async function lockWhenFree(file: string, signal: AbortSignal) {
  for (let looks = 0; !signal.aborted; looks += 1) {
    try {
      const lock = await ProcessLock.take(file);
      return { hasWaited: looks > 0, release: () => lock.release() };
    } catch (error) {
      if (!(error instanceof ProcessLockedError)) throw error;
      if (looks === 0) say(`process ${error.pid} is installing it already; waiting for that`);
      await setTimeout(LOOK_MS, null, { signal }).catch(() => null);
    }
  }
  return null;
}

function byHand({ name, version, folder }: WantedPackage): string {
  return ['npm', ...installArguments({ spec: `${name}@${version}`, folder })].map(shellWord).join(' ');
}

/** Whether somebody at the terminal can be asked. */
function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/**
 * Asks on the terminal, where yes is what Enter says. The end of the input is a no.
 *
 * @param signal ends it: there was no answer
 */
function isAgreed(question: string, signal: AbortSignal): Promise<boolean> {
  // Not as a `terminal`: that one takes Ctrl-C for itself, and here it ends the command as it does everywhere.
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
      const said = line.trim().toLowerCase();
      if (['', 'y', 'yes'].includes(said)) answer(true);
      else if (['n', 'no'].includes(said)) answer(false);
      else ask();
    });
    lines.once('close', stop);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    else ask();
  });
}

/**
 * Installs a package into a folder, whole or not at all: npm works in a folder beside, and what it has made takes the
 * place of what was there in one step. Whoever is killed in the middle leaves nothing that passes for an install.
 *
 * Ordering: to be called by one process at a time for each folder.
 */

interface Install {
  /** With its version. */
  spec: string;
  folder: string;
}

/** The same command for a person. Package scripts do not run: none of the wanted packages needs them. */
function installArguments({ spec, folder }: Install): string[] {
  return ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', spec];
}

const DRAFT = '.new-';
const OLD = '.old-';
/** What npm keeps beside the packages: with it, those that are there already are installed again with the new one. */
const MANIFESTS = ['package.json', 'package-lock.json'];

/**
 * @param signal ends npm
 * @returns null when it is done; else what went wrong, npm's own words having been shown
 */
async function npmInstall(
  { spec, folder }: Install,
  isWhole: (folder: string) => boolean,
  signal: AbortSignal,
): Promise<string | null> {
  await removeRemains(folder);
  const draft = await mkdtemp(join(folder, DRAFT));
  try {
    await copyManifests(folder, draft);
    const trouble = await runNpm(installArguments({ spec, folder: draft }), draft, signal);
    if (trouble !== null) return trouble;
    if (!isWhole(draft)) return `npm ended well, but not all of ${spec} is there`;
    await replace(draft, folder);
    return null;
  } finally {
    await removeRemains(folder);
  }
}

/** A manifest of its own, else npm would take the folder's name for one, which no package may have. */
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

/** Also those of a process that was killed. An npm that outlived it may write there still: the next one removes it. */
async function removeRemains(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(DRAFT) && !name.startsWith(OLD)) continue;
    await rm(join(folder, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
  }
}

function runNpm(args: string[], cwd: string, signal: AbortSignal): Promise<string | null> {
  const npm = npmProgram();
  const kept = Object.entries(process.env).filter(([name]) => !QUIET.test(name));
  const env = Object.fromEntries(kept) as NodeJS.ProcessEnv;
  return new Promise((resolve) => {
    // What it makes is its owner's alone, as everything in the data folder. Its output is no result of ours: to stderr.
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
      ended(error.code === 'ENOENT' ? 'npm is not on this machine' : `npm did not start (${error.code})`);
    });
    child.once('exit', (code, name) => ended(code === 0 ? null : `npm failed (${name ?? `exit ${code}`})`));
    if (signal.aborted) end();
  });
}

/** `npm run -s` hands its silence on. */
const QUIET = /^npm_config_(loglevel|progress)$/i;

/**
 * A package as it lies in the `node_modules` of one folder, and of no folder above it, where Node itself would go on
 * looking.
 *
 * @returns the file that is loaded of it; null if it is not there, or not all of it
 */
export function installedPackage(folder: string, name: string): string | null {
  const packages = join(folder, 'node_modules');
  const home = join(packages, ...name.split('/'));
  const manifest = readJson<Manifest>(join(home, 'package.json'));
  if (manifest === null || !isRecorded(packages, name, manifest) || !hasItsPlatform(packages, home, manifest)) {
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

/** npm writes down what it has installed once all of it is there: what is not on its list was cut short. */
function isRecorded(packages: string, name: string, { version }: Manifest): boolean {
  const record = readJson<{ packages?: Record<string, { version?: string }> }>(join(packages, '.package-lock.json'));
  if (record?.packages === undefined) return true;
  return record.packages[`node_modules/${name}`]?.version === version;
}

/** Programs come as packages of their own, one for each platform, of which npm takes the one that fits. */
function hasItsPlatform(packages: string, home: string, { optionalDependencies = {} }: Manifest): boolean {
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

/** Whether a path leads to something in a folder, whatever links there are on the way. */
export function isWithin(folder: string, path: string): boolean {
  try {
    return realpathSync(path).startsWith(folder + sep);
  } catch {
    return false;
  }
}
