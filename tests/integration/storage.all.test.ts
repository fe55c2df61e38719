import { describe, expect, test } from 'vitest';
import { openDatabase } from '@/db/client';
import { TtlCache } from '@/db/ttl-cache';
import { readStorage } from '@/lib/server/queries/read-storage';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';

describe.skipIf('missing' in ensureLibsqlServer())('the storage of a libSQL server', () => {
  test('is measured to the byte, like that of a file', async () => {
    const libsql = await startLibsqlServer();
    const remote = await openDatabase({ url: libsql.url, migrates: true });
    const storage = await readStorage(remote.reader, Date.now, new TtlCache());
    expect(storage.method).toBe('measured');
    expect(storage.parts.reduce((sum, { bytes }) => sum + bytes, storage.freeBytes)).toBe(storage.bytes);
    await remote.close();
    await libsql.stop();
  });
});
