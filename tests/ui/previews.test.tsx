import type { SessionSummary, Task, Turn } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { PreviewBody } from '@/app/(console)/preview-body';
import { quoteOf } from '@/app/(console)/sessions/[sessionId]/session-foot';
import { useTaskSlots } from '@/app/(console)/sessions/[sessionId]/session-transcript';
import { AnswerStoresProvider } from '@/components/inbox/item-request';
import { LiveProvider } from '@/components/live/live-provider';
import { useInitialData } from '@/components/live/use-fleet';
import { RequestOutcome } from '@/components/requests/request-outcome';
import { sessionTitle } from '@/components/sessions/session-labels';
import { SessionRow } from '@/components/sessions/session-row';
import { TaskSummary } from '@/components/tasks/task-summary';
import { TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { turnTitle } from '@/components/transcript/turn-cause';
import { TurnHeader } from '@/components/transcript/turn-header';
import { NowProvider } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';
import { aMessage, aRequest, aSession, aTask, aTurn } from './rows';

const MARKDOWN = '**Done** — see [log](https://a.b/log):\n- `npm test` passed';
const WORDS = 'Done — see log: npm test passed';

function words(page: React.ReactNode): string {
  return markup(page).replace(/<[^>]*>/g, '');
}

function markup(page: React.ReactNode): string {
  const around = (
    <NowProvider renderedAt={63_000}>
      <LivenessProvider stoppedAt={null} lastSignalAt={null} why="" isAway={false}>
        {page}
      </LivenessProvider>
    </NowProvider>
  );
  return renderToStaticMarkup(around);
}

function Woken({ turn, tasks }: { turn: Turn; tasks: Task[] }) {
  return (
    <TranscriptSlotsProvider value={useTaskSlots(tasks, [turn])}>
      <TurnHeader turn={turn} />
    </TranscriptSlotsProvider>
  );
}

describe('Markdown on one line is plain text', () => {
  it('as a session’s last text and pending question', () => {
    expect(words(<SessionRow session={aSession({ lastText: MARKDOWN })} current={false} />)).toContain(WORDS);
    const waiting = aSession({ state: 'needs-input', stateReason: MARKDOWN });
    expect(words(<SessionRow session={waiting} current={false} />)).toContain(WORDS);
  });

  it('but a session’s pending command is verbatim, after the name of its tool', () => {
    const request = { kind: 'permission' as const, tool: 'Bash', line: 'rm -rf **/build' };
    const waiting = aSession({ state: 'needs-input', stateReason: 'Bash: rm -rf …', request });
    expect(words(<SessionRow session={waiting} current={false} />)).toMatch(/Bash rm -rf \*\*\/build$/);
  });

  it('as the last text of a session with a seen failure, without an alert glyph', () => {
    const failed = (seenState: number | null) => {
      const arrangement = { name: null, pinnedAt: null, archivedAt: null, seenState };
      const words = { stateReason: 'No credit', lastText: MARKDOWN, stateSince: 63_000, arrangement };
      return markup(<SessionRow session={aSession({ state: 'failed', ...words })} current={false} />);
    };
    const [fresh, seen] = [failed(null), failed(63_000)];
    expect([fresh.includes('scale-110'), fresh.includes('No credit'), fresh.includes(WORDS)]).toEqual([
      true,
      true,
      false,
    ]);
    expect([seen.includes('scale-110'), seen.includes('No credit'), seen.includes(WORDS)]).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('and an empty text keeps the height of its line', () => {
    const row = markup(<SessionRow session={aSession({ lastText: null, stateReason: null })} current={false} />);
    expect(row).toMatch(/<span dir="auto" class="[^"]*min-h-\[1lh\][^"]*"><\/span>/);
    expect(row).not.toContain('empty:hidden');
  });

  it('as a session’s title', () => {
    expect(sessionTitle(aSession({ title: '# Fix the `login`\n\nIt **fails**.' }))).toBe('Fix the login · It fails.');
  });

  it('as a task’s summary, on its card and in the turn that it woke', () => {
    expect(words(<TaskSummary text={MARKDOWN} />)).toBe(WORDS);
    const task = aTask({ status: 'completed', endedAt: 4_000, summary: MARKDOWN });
    const turn = aTurn({ id: 'r2', kind: 'between-run', position: '20', trigger: { kind: 'task', taskIds: ['t1'] } });
    expect(words(<Woken turn={turn} tasks={[task]} />)).toContain(WORDS);
  });

  it('as a quoted message, and in a turn’s name', () => {
    const turn = aTurn({ items: [aMessage({ id: 'm1', role: 'user', text: MARKDOWN })] });
    expect(quoteOf([turn], 'm1')).toBe(WORDS);
    expect(turnTitle(turn, { findTask: () => null, outcomeOf: () => '' })).toBe(`User turn “${WORDS}”`);
  });

  it('as an answered question', () => {
    expect(words(<RequestOutcome item={aRequest({ title: MARKDOWN, outcome: 'answered' })} />)).toContain(WORDS);
  });
});

describe('a long summary', () => {
  it('shows its length, and a button for the whole text', () => {
    const shown = words(<TaskSummary text={'a'.repeat(50_000)} />);
    expect(shown).toContain('Show all (50 kB)');
    expect(shown.length).toBeLessThan(1_100);
  });
});

function Previewed({ session }: { session: SessionSummary }) {
  useInitialData((fleet) => fleet.putSession({ session, position: '10' }));
  return <PreviewBody sessionId={session.id} onReady={() => {}} />;
}

it('work without progress has a glyph of its own in the list and its preview', () => {
  const evidence = { rule: 16, source: 'turn', observedAt: 1_000 } as const;
  const shown = (note?: 'no-progress') => {
    const session = aSession({ state: 'working', evidence: note ? { ...evidence, note } : evidence });
    return [
      markup(<SessionRow session={session} current={false} />),
      markup(
        <LiveProvider>
          <AnswerStoresProvider>
            <Previewed session={session} />
          </AnswerStoresProvider>
        </LiveProvider>,
      ),
    ].map((page) => page.includes('animate-breathe'));
  };
  expect([shown(), shown('no-progress')]).toEqual([
    [true, true],
    [false, false],
  ]);
});

it('a crash has its exit code once above its evidence', () => {
  const process = { observedAt: 1_000, turnId: null, value: { code: 137, signal: null, reason: null } };
  const observations = { ...aSession().observations, process };
  const session = aSession({ state: 'exited', stateReason: 'exit code 137', observations });
  const shown = words(
    <LiveProvider>
      <AnswerStoresProvider>
        <Previewed session={session} />
      </AnswerStoresProvider>
    </LiveProvider>,
  );
  expect(shown.match(/exit code 137/g)).toHaveLength(1);
});
