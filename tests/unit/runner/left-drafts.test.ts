import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeLeftDrafts } from '@interlude/runner/host/data-folder.mjs';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

test('what killed processes have left goes, what running ones and other programs have there stays', async () => {
  const folder = await tempDir();
  const { pid: gone } = spawnSync(process.execPath, ['-e', '']);
  const kept = ['a', `a.${process.pid}`, 'a.bak', `a.${gone}.bak`, `ab.${gone}`, `b.${gone}`];
  for (const name of [...kept, `a.${gone}`]) writeFileSync(join(folder, name), '');
  mkdirSync(join(folder, `next.${gone}`));
  writeFileSync(join(folder, `next.${gone}`, 'page'), '');
  removeLeftDrafts(join(folder, 'a'));
  removeLeftDrafts(join(folder, 'next'));
  expect(readdirSync(folder).sort()).toEqual(kept.sort());
  removeLeftDrafts(join(folder, 'a'), /^(\d+)\.bak$/);
  expect(readdirSync(folder)).not.toContain(`a.${gone}.bak`);
  expect(() => removeLeftDrafts(join(folder, 'nowhere', 'a'))).not.toThrow();
});
