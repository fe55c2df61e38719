import { expect, test } from 'vitest';
import { ClaudeAdapter } from '@/lib/adapters/claude/claude-adapter';
import { feedRecordingLine } from '@/lib/adapters/claude/recording';
import { closeOpenThings, foldOpenThings, NOTHING_OPEN, type OpenThings } from '@/lib/runner/sources/claude/live-facts';
import { recordingLines } from '../../support/read-recording';

test.each(['3bg', 'agents', 'bash-bg', 'perm', 'race', 'midturn-text', 'stoptask'])(
  'in %s nothing is open once everything has ended, and what is open before is closed by its ends',
  (name) => {
    let count = 0;
    const adapter = new ClaudeAdapter({ sessionId: 's', newRunId: () => `run-${++count}` });
    let open: OpenThings = NOTHING_OPEN;
    let wasOpen = 0;
    for (const line of recordingLines(name)) {
      for (const one of feedRecordingLine(adapter, line, line.t)) open = foldOpenThings(open, one);
      if (open === NOTHING_OPEN) continue;
      wasOpen += 1;
      const ends = closeOpenThings(open, 's', line.t);
      expect(ends.reduce(foldOpenThings, open)).toEqual(NOTHING_OPEN);
    }
    expect(wasOpen).toBeGreaterThan(0);
    for (const one of adapter.ended(0)) open = foldOpenThings(open, one);
    expect(open).toEqual(NOTHING_OPEN);
  },
);
