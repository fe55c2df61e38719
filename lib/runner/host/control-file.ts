import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileNameOf } from '../logger/logger';
import { removeLeftDrafts } from './data-folder.mjs';

/**
 * How a hook finds its companion: a file only its owner can read, with the port and the secret of this process. It is
 * a configuration for curl, so that the secret never stands on a command line.
 *
 * Failure: written whole under another name first, so nobody reads half of it. A file that stays behind after a kill
 * names a port where nobody knows its secret.
 */
export interface ControlFile {
  url: string;
  secret: string;
  pid: number;
}

/** The companion of interactive sessions: where the hooks that are installed look for it, unless told otherwise. */
export const HOOKS_CONTROL = 'hooks';

/** @param name `hooks` for the companion of interactive sessions, else the id of the agent */
export function controlPath(dataDir: string, name: string): string {
  return join(controlFolder(dataDir), `${fileNameOf(name)}.control`);
}

export function controlFolder(dataDir: string): string {
  return join(dataDir, 'control');
}

export async function writeControlFile(path: string, { url, secret, pid }: ControlFile): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const text = [`# ${url} ${pid}`, `header = "authorization: Bearer ${secret}"`, 'noproxy = "*"', ''].join('\n');
  const partial = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  removeLeftDrafts(path, /^(\d+)\.[0-9a-f]{8}$/);
  try {
    await writeFile(partial, text, { mode: 0o600, flag: 'wx' });
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

/** @returns null if there is none, or where it is not one */
export async function readControlFile(path: string): Promise<ControlFile | null> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const place = /^# (http:\/\/\S+) (\d+)$/m.exec(text);
  const secret = /^header = "authorization: Bearer (\S+)"$/m.exec(text)?.[1];
  return place?.[1] && secret ? { url: place[1], pid: Number(place[2]), secret } : null;
}

/** Removes the file unless a newer companion has written its own. */
export async function removeControlFile(path: string, secret: string): Promise<void> {
  const now = await readControlFile(path);
  if (now?.secret === secret) await rm(path, { force: true });
}
