import { expect, test } from 'vitest';
import { bundleWorker } from '../support/typescript-programs';

test('the handlers import nothing of Node and nothing that opens files when bundled for workers', async () => {
  const { nodeImports, files } = await bundleWorker();
  expect(nodeImports).toEqual([]);
  expect(files).toEqual(expect.arrayContaining(['lib/server/create-server.ts', 'db/no-file.ts']));
  expect(
    files.filter((file) => /^(db\/(open-file|database-file|local-)|node_modules\/(libsql|ws)\/)/.test(file)),
  ).toEqual([]);
});

test('the handlers import node:fs when bundled for Node', async () => {
  const { nodeImports } = await bundleWorker(['node']);
  expect(nodeImports).toContain('db/open-file.ts imports node:fs');
});
