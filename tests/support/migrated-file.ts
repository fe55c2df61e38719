import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openDatabase } from '@/db/client';

let empty: Promise<Uint8Array> | null = null;

/**
 * Creates an empty database file with this version's schema. Migrating one costs eight times as much as writing its bytes,
 * so each process migrates only its first.
 */
export async function createMigratedFile(path: string): Promise<void> {
  empty ??= migrateOne();
  await writeFile(path, await empty, { mode: 0o600, flag: 'wx' });
}

async function migrateOne(): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), 'interlude-test-'));
  try {
    const path = join(folder, 'interlude.db');
    // Closing it moves the write-ahead log into the file.
    await (await openDatabase({ url: pathToFileURL(path).href })).close();
    return await readFile(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
