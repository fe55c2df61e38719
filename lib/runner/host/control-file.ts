import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileNameOf } from '../logger/logger';
import { removeStaleDrafts } from './data-folder.mjs';

/**
 * The port and secret of a companion, in a private file for its hooks. The format is a configuration of curl, which
 * keeps the secret off the command line.
 *
 * Failure: the file is written to a draft and renamed, so that readers never see a partial file. After a kill the file
 * stays, but no later process accepts its secret.
 */
export interface ControlFile {
  url: string;
  secret: string;
  pid: number;
}

/** The name of the companion for terminals, which installed hooks look for. */
export const HOOKS_CONTROL = 'hooks';

/** @param name HOOKS_CONTROL or the id of an agent */
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
  removeStaleDrafts(path, /^(\d+)\.[0-9a-f]{8}$/);
  try {
    await writeFile(partial, text, { mode: 0o600, flag: 'wx' });
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

/** @returns null if the file is missing or invalid */
export async function readControlFile(path: string): Promise<ControlFile | null> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const place = /^# (http:\/\/\S+) (\d+)$/m.exec(text);
  const secret = /^header = "authorization: Bearer (\S+)"$/m.exec(text)?.[1];
  return place?.[1] && secret ? { url: place[1], pid: Number(place[2]), secret } : null;
}

/** Removes the file unless a newer companion has replaced it. */
export async function removeControlFile(path: string, secret: string): Promise<void> {
  const now = await readControlFile(path);
  if (now?.secret === secret) await rm(path, { force: true });
}
