import { RECORDED_KINDS } from '@interlude/runner/adapters/recordings';
import { readRecording } from '@interlude/runner/cli/recording';
import { describe, expect, test } from 'vitest';
import { eventLines, expectValidEvents, playRecorded, recordedLines, recordingsOf } from '../../support/recordings';

const RECORDINGS = recordingsOf('opencode');

describe.each(RECORDINGS)('the recording %s of OpenCode', (name) => {
  const lines = recordedLines('opencode', name);

  test('matches its golden file', async () => {
    const text = eventLines(playRecorded('opencode', lines));
    await expect(text).toMatchFileSnapshot(`../../fixtures/golden/opencode/${name}.txt`);
  });

  test('is well formed when cut at any event', () => {
    for (let length = 1; length <= lines.length; length += 1)
      expectValidEvents(playRecorded('opencode', lines.slice(0, length)));
  });

  test('drops doubled events', () => {
    const twice = lines.flatMap((line) => (line.fields.dir === 'in' ? [line, line] : [line]));
    expect(eventLines(playRecorded('opencode', twice))).toBe(eventLines(playRecorded('opencode', lines)));
  });

  test('is recognized by its lines', async () => {
    expect(await readRecording(`tests/fixtures/recordings/opencode/${name}.jsonl`)).toMatchObject({ kind: 'opencode' });
    expect(Object.keys(RECORDED_KINDS)).toContain('opencode');
  });
});
