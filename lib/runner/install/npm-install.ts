import { type ChildProcess, spawn } from 'node:child_process';
import { copyFile, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npmProgram } from './npm-program.mjs';

/**
 * Installs a package into a folder, whole or not at all: npm works in a folder beside, and what it has made takes the
 * place of what was there in one step. Whoever is killed in the middle leaves nothing that passes for an install.
 *
 * Ordering: to be called by one process at a time for each folder.
 */

export interface Install {
  /** With its version. */
  spec: string;
  folder: string;
}

/** The same command for a person. Package scripts do not run: none of the wanted packages needs them. */
export function installArguments({ spec, folder }: Install): string[] {
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
export async function npmInstall(
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
