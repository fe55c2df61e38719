import type { RecordedLine } from '@interlude/runner/adapters/recordings';
import { describe, expect, test } from 'vitest';
import { eventLines, expectValidEvents, playRecorded, recordedLines, recordingsOf } from '../../support/recordings';

const names = recordingsOf('acp');

describe.each(names)('the recording %s', (name) => {
  const lines = recordedLines('acp', name);

  test('matches its golden file', async () => {
    const told = playRecorded('acp', lines);
    expectValidEvents(told);
    await expect(eventLines(told)).toMatchFileSnapshot(`../../fixtures/golden/acp/${name}.txt`);
  });

  test('is well formed when cut at any frame', () => {
    for (let index = 0; index <= lines.length; index++) expectValidEvents(playRecorded('acp', lines.slice(0, index)));
  });

  test('is well formed with every frame doubled', () => {
    expectValidEvents(
      playRecorded(
        'acp',
        lines.flatMap((line) => [line, line]),
      ),
    );
  });

  test('is well formed with garbage between frames', () => {
    const garbage = GARBAGE.map((msg, index) => ({ dir: index % 3 === 0 ? 'out' : 'in', msg }));
    const mixed = lines.flatMap(({ at, fields }, index): RecordedLine[] => [
      { at, fields },
      { at, fields: garbage[index % garbage.length] ?? {} },
    ]);
    expectValidEvents(playRecorded('acp', mixed));
  });
});

const GARBAGE: readonly unknown[] = [
  null,
  7,
  'text',
  [],
  {},
  { jsonrpc: '2.0' },
  { id: null, result: {} },
  { id: 0 },
  { id: 0, error: 'none' },
  { id: {}, method: 7 },
  { method: 'session/update' },
  { method: 'session/update', params: { sessionId: 7, update: [] } },
  { method: '_claude/sdkMessage', params: { message: null } },
  { id: 'x', method: 'session/request_permission', params: {} },
];
