import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates an empty folder, removed after the test. */
export async function tempDir(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'interlude-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
