import { expect, test } from 'vitest';
import { bundleWorker } from '../support/typescript-programs';

test('handlers bundled for workers import nothing of Node and nothing that opens files', async () => {
  const { nodeImports, files } = await bundleWorker();
  expect(nodeImports).toEqual([]);
  expect(files).toEqual(expect.arrayContaining(['lib/server/create-server.ts', 'db/no-file.ts']));
  expect(
    files.filter((file) => /^(db\/(open-file|database-file|local-)|node_modules\/(libsql|ws)\/)/.test(file)),
  ).toEqual([]);
});

test('handlers bundled for Node import node:fs', async () => {
  const { nodeImports } = await bundleWorker(['node']);
  expect(nodeImports).toContain('db/open-file.ts imports node:fs');
});
