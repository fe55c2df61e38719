import { frameReader } from '@interlude/runner/adapters/recordings';
import type { WireEnd } from '@interlude/runner/adapters/wire';
import { expect, test } from 'vitest';
import { playRecorded, recordedLines, recordingsOf } from '../../support/recordings';

/** Reads the last line of a recording. */
function endOf(exit: object): WireEnd | undefined {
  const ends: WireEnd[] = [];
  const reader = frameReader({
    dueAt: null,
    read: () => [],
    elapsed: () => [],
    ended: (end) => {
      ends.push(end);
      return [];
    },
  });
  reader.read({ at: 1, fields: { dir: 'in', msg: { exit } } }, 1);
  return ends[0];
}

test.each([
  [
    { code: null, signal: 'SIGTERM' },
    { reason: 'stopped by SIGTERM', isAsked: true },
  ],
  [{ s: 'SIGINT' }, { reason: 'stopped by SIGINT', isAsked: true }],
  [
    { code: null, signal: 'SIGKILL' },
    { reason: 'terminated by signal SIGKILL', exitCode: null, signal: 'SIGKILL' },
  ],
  [{ code: 3 }, { reason: 'exited with code 3', exitCode: 3, signal: null }],
  [{}, { reason: 'ended', exitCode: null, signal: null }],
])('does not fail an agent stopped at the end of a recording: %j', (exit, end) => {
  expect(endOf(exit)).toEqual(end);
});

test.each(['acp', 'agentapi', 'agui', 'codex', 'opencode'])(
  'the session that a replay is asked for, the first of a recording of %s, is told of',
  (kind) => {
    for (const name of recordingsOf(kind)) {
      const told = playRecorded(kind, recordedLines(kind, name));
      expect(
        told.map(({ sessionId }) => sessionId),
        name,
      ).toContain('s1');
    }
  },
);
