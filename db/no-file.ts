import { AppError } from '@interlude/protocol/errors';
import type { Driver } from './driver';

/** Replaces `open-file.ts` on platforms without a file system. */

function noFiles(): AppError {
  return new AppError(
    'unavailable',
    'This platform has no file system. Set INTERLUDE_DATABASE_URL to a libSQL server, for example libsql://<host>.',
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
