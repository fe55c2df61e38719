import { expect, test } from 'vitest';
import { ClaudeAdapter } from '@/lib/adapters/claude/claude-adapter';
import { feedRecordingLine } from '@/lib/adapters/claude/recording';
import { endsOf, NOTHING_OPEN, type OpenWork, workAfter } from '@/lib/protocol/lifecycle/open-session';
import { recordingLines } from '../../support/read-recording';

test.each(['3bg', 'agents', 'bash-bg', 'perm', 'race', 'midturn-text', 'stoptask'])(
  'in %s nothing is open once everything has ended, and what is open before is closed by its ends',
  (name) => {
    let count = 0;
    const adapter = new ClaudeAdapter({ sessionId: 's', newRunId: () => `run-${++count}` });
    let open: OpenWork = NOTHING_OPEN;
    let wasOpen = 0;
    for (const line of recordingLines(name)) {
      for (const one of feedRecordingLine(adapter, line, line.t)) open = workAfter(open, [one]);
      if (open === NOTHING_OPEN) continue;
      wasOpen += 1;
      const ends = endsOf(open, 's', line.t);
      expect(workAfter(open, ends)).toEqual(NOTHING_OPEN);
    }
    expect(wasOpen).toBeGreaterThan(0);
    for (const one of adapter.ended(0)) open = workAfter(open, [one]);
    expect(open).toEqual(NOTHING_OPEN);
  },
);
