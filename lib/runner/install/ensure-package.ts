import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { say } from '../cli/say';
import { ProcessLock, ProcessLockedError } from '../process-lock';
import { shownPath } from '../shown-command.mjs';
import { canAsk, isAgreed } from './consent';
import { installedPackage } from './installed-package';
import { installArguments, npmInstall } from './npm-install';

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
