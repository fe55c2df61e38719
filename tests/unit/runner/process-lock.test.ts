import { join } from 'node:path';
import { ProcessLock } from '@interlude/runner/host/process-lock';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

test('is held by one holder until released', async () => {
  const file = join(await tempDir(), 'a.lock');
  const lock = await ProcessLock.acquire(file, 'The outbox');
  await expect(ProcessLock.acquire(file, 'The outbox')).rejects.toThrow(
    `The outbox is in use by process ${process.pid}; stop it first`,
  );
  await lock.release();
  await (await ProcessLock.acquire(file)).release();
});
