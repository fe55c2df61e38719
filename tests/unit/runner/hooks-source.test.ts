import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createLogger } from '@/lib/runner/logger/logger';
import { HooksSource } from '@/lib/runner/sources/hooks/hooks-source';
import { newMirrorState } from '@/lib/runner/sources/hooks/mirror-state';
import { MemorySurroundings } from '../../support/source-surroundings';
import { tempDir } from '../../support/temp-dir';

test('what is remembered of a session goes once it has ended and its transcript is gone: nobody can resume it', async () => {
  const dir = await tempDir();
  const there = join(dir, 'there.jsonl');
  await writeFile(there, '');
  const surroundings = new MemorySurroundings();
  const remembered = {
    ...{ 'ended, gone': { file: join(dir, 'gone.jsonl'), ended: true } },
    ...{ 'ended, there': { file: there, ended: true } },
    ...{ 'open, gone': { file: join(dir, 'late.jsonl'), ended: false } },
  };
  for (const [name, { file, ended }] of Object.entries(remembered)) {
    surroundings.stored.set(`transcript:${name}`, JSON.stringify({ ...newMirrorState(file), ended }));
  }
  surroundings.stored.set('transcript:of no mirror', '7');
  const source = await HooksSource.open({ surroundings, logger: createLogger({ agentId: 'a1', dir }) });
  await source.close();
  expect([...surroundings.stored.keys()]).toEqual(['transcript:ended, there', 'transcript:open, gone']);
});
