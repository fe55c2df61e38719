import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeStaleDrafts } from '@interlude/runner/host/data-folder.mjs';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

test('what killed processes have left goes, what running ones and other programs have there stays', async () => {
  const folder = await tempDir();
  const { pid: gone } = spawnSync(process.execPath, ['-e', '']);
  const kept = ['a', `a.${process.pid}`, 'a.bak', `a.${gone}.bak`, `ab.${gone}`, `b.${gone}`];
  for (const name of [...kept, `a.${gone}`]) writeFileSync(join(folder, name), '');
  mkdirSync(join(folder, `next.${gone}`));
  writeFileSync(join(folder, `next.${gone}`, 'page'), '');
  removeStaleDrafts(join(folder, 'a'));
  removeStaleDrafts(join(folder, 'next'));
  expect(readdirSync(folder).sort()).toEqual(kept.sort());
  removeStaleDrafts(join(folder, 'a'), /^(\d+)\.bak$/);
  expect(readdirSync(folder)).not.toContain(`a.${gone}.bak`);
  expect(() => removeStaleDrafts(join(folder, 'nowhere', 'a'))).not.toThrow();
});
