import { copyFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test, vi } from 'vitest';
import { openDatabase } from '@/db/client';
import { isIntact } from '@/db/open-file';
import { deltas, insertRows } from '@/tests/support/database';
import { temporaryDatabase } from '../../support/database';
import { tempDir } from '../../support/temp-dir';

/** A file that another program emptied. Its content is only in its log, which SQLite would drop. */

test('an emptied file is not written to, and its log is kept and set aside by the next start', async () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => {});
  const database = await temporaryDatabase();
  const path = fileURLToPath(database.url);
  await insertRows(database, deltas(20));
  const { size } = statSync(`${path}-wal`);
  truncateSync(path, 0);
  expect(await database.trouble()).toBe(`its file ${path} was emptied by another program`);
  await expect(insertRows(database, deltas(1))).rejects.toMatchObject({ code: 'unavailable' });
  await database.close();
  expect([statSync(path).size, statSync(`${path}-wal`).size]).toEqual([0, size]);
  // as the next process finds it, while this one has it open
  const found = join(await tempDir(), 'found.db');
  for (const suffix of ['', '-wal']) copyFileSync(path + suffix, found + suffix);
  const next = await openDatabase({ url: pathToFileURL(found).href });
  expect(said.mock.calls.flat()).toEqual([expect.stringContaining('was set aside')]);
  await next.close();
  await database.dispose();
});

test('an emptied file is not checked, since that would open a changed file', async () => {
  const open = vi.fn();
  const file = { changed: async () => 'its file x.db was emptied by another program' };
  expect(await isIntact(open, file)).toBe(false);
  expect(open).not.toHaveBeenCalled();
});
