import { AppError } from '@interlude/protocol/errors';
import type { Driver } from './driver';

/** What stands in the place of `open-file.ts` where there are no files. */

function noFiles(): AppError {
  return new AppError(
    'unavailable',
    'There are no files here. Set INTERLUDE_DATABASE_URL to a libSQL server, such as libsql://<host>.',
  );
}

export async function openFile(_name: string): Promise<Driver> {
  throw noFiles();
}

export function defaultUrl(_dataDir: string | undefined): string {
  throw noFiles();
}

export function fileUrl(path: string): string {
  return `file:${path}`;
}

export function pathOf(url: string): string {
  return url;
}

export async function readMigration(_tag: string): Promise<string> {
  throw noFiles();
}
