import { appendFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { newMirrorState } from '@/lib/runner/sources/hooks/mirror-state';
import { TranscriptFiles } from '@/lib/runner/sources/hooks/transcript-files';
import { tempDir } from '../../support/temp-dir';

const MOST_KEYS = 100;
const LINES = 3 * MOST_KEYS;

const uuids = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `line-${from + at}`);
const linesOf = (keys: readonly string[]) => keys.map((uuid) => `${JSON.stringify({ uuid })}\n`).join('');

/** A session far longer than what is remembered of it. */
async function longSession() {
  const file = join(await tempDir(), 's.jsonl');
  writeFileSync(file, linesOf(uuids(0, LINES)));
  const told: string[] = [];
  const files = new TranscriptFiles({
    read: newMirrorState(file),
    subagents: () => [],
    onLines: (lines) => void told.push(...lines.map(({ key }) => key)),
    log: () => undefined,
    mostKeys: MOST_KEYS,
  });
  await files.readOn();
  return { file, files, told };
}

describe('of a session of any length', () => {
  test('the newest lines are known by name, and no more of them than are needed', async () => {
    const { files, told } = await longSession();
    expect(told).toEqual(uuids(0, LINES));
    const known = uuids(0, LINES).filter((key) => files.has(key));
    expect(known).toEqual(uuids(LINES - MOST_KEYS, LINES));
  });

  test.each<[string, (file: string) => void]>([
    [
      'replaced by a copy of itself',
      (file) => {
        writeFileSync(`${file}.new`, linesOf(uuids(0, LINES)));
        renameSync(`${file}.new`, file);
      },
    ],
    ['cut off among the newest lines', (file) => truncateSync(file, linesOf(uuids(0, LINES - 10)).length)],
    ['cut off far before them', (file) => truncateSync(file, linesOf(uuids(0, 50)).length)],
  ])('%s, it tells what it gains and nothing a second time', async (_how, change) => {
    const { file, files, told } = await longSession();
    change(file);
    await files.readOn();
    appendFileSync(file, linesOf(['new-1', 'new-2']));
    await files.readOn();
    expect(told).toEqual([...uuids(0, LINES), 'new-1', 'new-2']);
  });

  test('replaced by a copy with a line among the newest ones, it tells that line', async () => {
    const { file, files, told } = await longSession();
    writeFileSync(`${file}.new`, linesOf([...uuids(0, LINES - 5), 'new', ...uuids(LINES - 5, LINES)]));
    renameSync(`${file}.new`, file);
    await files.readOn();
    expect(told).toEqual([...uuids(0, LINES), 'new']);
  });

  test('replaced by another session, it tells all of that', async () => {
    const { file, files, told } = await longSession();
    writeFileSync(`${file}.new`, linesOf(uuids(1_000, 1_200)));
    renameSync(`${file}.new`, file);
    await files.readOn();
    expect(told).toEqual([...uuids(0, LINES), ...uuids(1_000, 1_200)]);
  });
});
