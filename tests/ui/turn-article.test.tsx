import type { AgentSummary, SessionSummary, Task, Turn } from '@interlude/protocol/read-models';
import { Window } from 'happy-dom';
import type { ReactElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { SessionLiveness } from '@/app/(console)/session-liveness';
import { SessionDetails } from '@/app/(console)/sessions/[sessionId]/session-details';
import { SessionFacts } from '@/app/(console)/sessions/[sessionId]/session-facts';
import { SessionScopeProvider } from '@/app/(console)/sessions/[sessionId]/session-scope';
import { useTaskSlots } from '@/app/(console)/sessions/[sessionId]/session-transcript';
import { LiveProvider } from '@/components/live/live-provider';
import { useInitialData } from '@/components/live/use-fleet';
import { RequestHead } from '@/components/requests/request-head';
import { SessionRow } from '@/components/sessions/session-row';
import { TaskOutcome } from '@/components/tasks/task-outcome';
import { TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { TurnArticle } from '@/components/transcript/turn-article';
import { countItemsAfter } from '@/components/transcript/use-tail';
import { NowProvider } from '@/components/ui/clock';
import { Glyph } from '@/components/ui/glyph';
import { LivenessProvider } from '@/components/ui/liveness';
import { aCall, aMessage, anAgent, aRequest, aSession, aTask, aTaskMoment, aTurn } from './rows';

interface Seen {
  stoppedAt?: number;
  lastSignalAt?: number;
}

function Page({ turns, tasks, seen }: { turns: Turn[]; tasks: Task[]; seen: Seen }): ReactElement {
  const { stoppedAt = null, lastSignalAt = null } = seen;
  return (
    <NowProvider renderedAt={63_000}>
      <LivenessProvider stoppedAt={stoppedAt} lastSignalAt={lastSignalAt} why="Runner gone" isAway={stoppedAt !== null}>
        <Turns turns={turns} tasks={tasks} />
      </LivenessProvider>
    </NowProvider>
  );
}

function Turns({ turns, tasks }: { turns: Turn[]; tasks: Task[] }): ReactElement {
  return (
    <TranscriptSlotsProvider value={useTaskSlots(tasks, turns)}>
      {turns.map((turn) => (
        <TurnArticle key={turn.id} turn={turn} flash={false} />
      ))}
    </TranscriptSlotsProvider>
  );
}

const render = (turns: Turn[], tasks: Task[] = [], seen: Seen = {}) =>
  renderToStaticMarkup(<Page turns={turns} tasks={tasks} seen={seen} />);
const names = (markup: string, role: 'article' | 'group') =>
  [
    ...markup.matchAll(
      role === 'article' ? /<article[^>]*aria-label="([^"]*)"/g : /role="group"[^>]*aria-label="([^"]*)"/g,
    ),
  ].map((match) => match[1]?.replaceAll('&#x27;', "'"));

describe('a truncated text', () => {
  it('shows how much is left out', () => {
    const items = [aMessage({ text: 'the beginning', cut: 15_752_000 })];
    expect(render([aTurn({ items })]).replaceAll('<!-- -->', '')).toContain('and 15,752,000 more characters');
    expect(render([aTurn({ items: [aMessage({ text: 'all of it' })] })])).not.toContain('more characters');
  });
});

describe('the caret of a growing text', () => {
  const carets = (markup: string) => markup.match(/animate-caret/g)?.length ?? 0;
  const text = aMessage({ id: 'm1', position: '11', text: '200 passed.', streaming: true });
  const open = (...after: Turn['items']) => render([aTurn({ state: 'open', endedAt: null, items: [text, ...after] })]);

  it('is gone without a runner', () => {
    const turn = aTurn({ state: 'open', endedAt: null, items: [text] });
    expect(carets(render([turn], [], { stoppedAt: 21_000 }))).toBe(0);
  });

  it('is behind the last text, whatever people send and tasks do meanwhile', () => {
    expect(carets(open())).toBe(1);
    expect(carets(open(aMessage({ id: 'u2', position: '12', role: 'user', text: 'And?' })))).toBe(1);
    expect(carets(open(aTaskMoment({ position: '12', phase: 'completed' })))).toBe(1);
  });

  it('is gone once the agent has gone on or waits for an answer', () => {
    expect(carets(open(aCall({ position: '12' })))).toBe(0);
    expect(carets(open(aRequest({ position: '12' })))).toBe(0);
    expect(carets(open(aMessage({ id: 'm2', position: '12', text: 'Next', streaming: true })))).toBe(1);
  });
});

describe('a turn', () => {
  const started = aTurn({ id: 'r1', items: [aTaskMoment()] });
  const ended = aTask({ status: 'failed', exitCode: 3, endedAt: 4_000, answeredInTurnId: 'r2', summary: 'No luck' });
  const woken = aTurn({
    id: 'r2',
    kind: 'between-run',
    position: '20',
    trigger: { kind: 'task', taskIds: ['t1'] },
    items: [
      aTaskMoment({ position: '21', phase: 'failed' }),
      aMessage({ position: '22', text: 'Poll exited with code 3' }),
    ],
  });

  it('is named after its kind', () => {
    const none = aTurn({ id: 'none:5', kind: 'none', position: '5' });
    expect(names(render([started, none, woken], [ended]), 'article')).toEqual([
      'User turn',
      'Outside any turn',
      'Between-run turn: woken by Poll (failed, exit 3)',
    ]);
  });

  it('names every task that ended together', () => {
    const turn = { ...woken, trigger: { kind: 'task' as const, taskIds: ['t1', 't2', 't3'] } };
    const other = aTask({ id: 't2', description: 'Lint', status: 'completed', exitCode: 0, position: '11' });
    expect(names(render([started, turn], [ended, other]), 'article')[1]).toBe(
      'Between-run turn: woken by Poll (failed, exit 3), Lint (completed), task t3',
    );
  });

  it('was notified, not woken, by a task of another session', () => {
    const trigger = { kind: 'task' as const, taskIds: ['t1', 't2', 't3'] };
    const notified = (ofSessionIds: (string | null)[]) => ({
      ...woken,
      items: [],
      trigger: { ...trigger, ofSessionIds },
    });
    const name = (turn: Turn) => names(render([started, turn], [ended]), 'article')[1];
    expect(name(notified(['b', 'b', 'b']))).toBe('Between-run turn: notified about 3 tasks in session “b”');
    expect(name(notified([null, 'b', 'c']))).toBe(
      'Between-run turn: woken by Poll (failed, exit 3), notified about 2 tasks in other sessions',
    );
    const one = { ...notified(['b']), trigger: { ...trigger, taskIds: ['t1'], ofSessionIds: ['b'] } };
    expect(name(one)).toBe('Between-run turn: notified about a task in session “b”');
    const markup = render([started, one], [ended]);
    expect(markup).toContain('href="/sessions/b"');
    expect(markup).not.toContain('Woken by');
  });

  it('has cards that name the reporter of a task and its session', () => {
    const toldElsewhere = { sessionId: 'b', turnId: 'r9' };
    const task = aTask({ status: 'failed', endedAt: 4_000, reportedBy: 'b', assignedBy: 'operator', toldElsewhere });
    const markup = render([started], [task]);
    expect(markup).toContain('Reported by');
    expect(markup).toContain('Assigned to this session by');
    expect(markup).toContain('href="/sessions/b#turn-r9"');
  });

  it('shows an end as another session reported it, even if its own reported otherwise later', () => {
    const reported = aTaskMoment({ phase: 'stopped', position: '21', at: 2_000, reportedBy: 'b' });
    const own = aTaskMoment({ phase: 'failed', position: '31' });
    const turns = [
      aTurn({ id: 'r2', position: '20', items: [reported] }),
      aTurn({ id: 'r3', position: '30', items: [own] }),
    ];
    const task = aTask({ status: 'failed', exitCode: 3, endedAt: 4_000 });
    expect(names(render(turns, [task]), 'group')).toEqual(['Task Poll: stopped', 'Task Poll: failed']);
    expect(render(turns, [task]).match(/stopped, exit 3/)).toBeNull();
  });

  it.each([
    ['timer', 'a timer'],
    ['agent', 'another agent'],
    ['unknown', 'an unknown cause'],
  ] as const)('woken by no task says what it knows: %s', (kind, words) => {
    const turn = { ...woken, trigger: { kind, taskIds: [] } };
    expect(names(render([turn]), 'article')).toEqual([`Between-run turn: woken by ${words}`]);
  });

  it('shows why and when a timer was set', () => {
    const trigger = { kind: 'timer' as const, taskIds: [], reason: 'check \u202ethe build', setAt: 1_000 };
    const markup = render([{ ...woken, trigger }]);
    expect(names(markup, 'article')).toEqual(['Between-run turn: woken by a timer: “check ⟨RLO⟩the build”']);
    expect(markup).toContain('dateTime="1970-01-01T00:00:01.000Z"');
    expect(markup.replace(/<[^>]*>/g, '')).toMatch(/Woken by a timer: check .*the build\s*· set/);
  });

  it('of a person names the timer that started it', () => {
    const markup = render([{ ...started, trigger: { kind: 'timer', taskIds: [], reason: 'check the build' } }]);
    expect(names(markup, 'article')).toEqual(['User turn']);
    expect(markup.replace(/<[^>]*>/g, '')).toContain('Woken by a timer: check the build');
  });

  it('links to the card of the waking task, and back', () => {
    const markup = render([started, woken], [ended]);
    expect(markup).toContain('href="#task-10"');
    expect(markup).toContain('id="task-10"');
    expect(markup).toContain('href="#turn-r2"');
    expect(markup).toContain('id="turn-r2"');
  });

  it('has one card per task, at its start', () => {
    expect(names(render([started, woken], [ended]), 'group')).toEqual(['Task Poll: failed']);
  });

  it('replaces an unloaded card', () => {
    expect(names(render([woken], [ended]), 'group')).toEqual(['Task Poll: failed']);
  });

  it('shows a running task with its clock', () => {
    expect(render([started], [aTask({ startedAt: 1_000 })])).toMatch(/Task Poll: running[\s\S]*>1 min 2 s</);
  });

  it('shows the call that started a task only in its card', () => {
    const turn = aTurn({ items: [aCall({ position: '9' }), aTaskMoment()] });
    const markup = render([turn], [aTask({ toolCallId: 'c1' })]);
    expect(markup.match(/npm test/g)).toHaveLength(1);
    expect(markup.indexOf('role="group"')).toBeLessThan(markup.indexOf('npm test'));
  });

  it('shows why it failed, and that it was interrupted', () => {
    const failed = aTurn({ state: 'failed', error: { message: 'Credit balance is too low', code: 'api_error' } });
    expect(render([failed])).toContain('Credit balance is too low');
    expect(render([aTurn({ state: 'interrupted' })])).toContain('Interrupted');
  });

  it('shows that it ended without an answer', () => {
    expect(render([{ ...woken, items: [] }], [ended])).toContain('The turn ended without an answer');
    expect(render([woken], [ended])).not.toContain('The turn ended without an answer');
  });

  it('marks a message that no turn has answered', () => {
    const queued = aTurn({ id: 'none:1', kind: 'none', items: [aMessage({ role: 'user', text: 'And now?' })] });
    expect(render([queued])).toContain('Queued');
    expect(render([aTurn({ items: [aMessage({ role: 'user' })] })])).not.toContain('Queued');
  });
});

function Details({ session }: { session: SessionSummary }) {
  useInitialData((fleet) => {
    fleet.putSession({ session, position: '10' });
    fleet.putAgent({ agent: anAgent({ id: session.agentId }), position: '10' });
  });
  return <SessionDetails />;
}

describe('an open turn', () => {
  const open = aTurn({ state: 'open', startedAt: 1_000, endedAt: null, items: [aTaskMoment()] });

  it('shows how long it has run', () => {
    expect(render([open])).toMatch(/Turn open for <time[^>]*>1 min 2 s</);
  });

  it('shows the age of its last signal after a minute', () => {
    expect(render([open], [], { lastSignalAt: 2_000 })).toContain('last signal 1 min ago');
    expect(render([open], [], { lastSignalAt: 4_000 })).not.toContain('last signal');
  });

  it('does not look active without a runner, and its clocks stop at the last signal', () => {
    const markup = render([open], [aTask({ startedAt: 1_000 })], { stoppedAt: 21_000 });
    expect(markup).toMatch(/Runner gone, worked <time[^>]*>20 s</);
    expect(markup).toContain('no signal');
    expect(markup).not.toMatch(/Turn open for <|animate-|>running</);
  });

  it.each([420_000, -420_000])('has the age of its state and request by a clock %i ms ahead', (skewMs) => {
    const at = 1_000 + skewMs;
    const session = aSession({ state: 'working', stateSince: 1_000, lastHeardAt: 60_000 });
    const markup = renderToStaticMarkup(
      <NowProvider renderedAt={63_000}>
        <SessionLiveness session={session} agent={anAgent({ clockSkewMs: skewMs })}>
          <SessionFacts session={session} agent={null} hasLinks={false} />
          <Turns turns={[{ ...open, startedAt: at, items: [aCall({ at, status: 'running' })] }]} tasks={[]} />
          <TaskOutcome task={aTask({ startedAt: at })} />
          <RequestHead item={aRequest({ at: at - 600_000, receivedAt: 1_000 })} isOpen isAll={false} />
        </SessionLiveness>
      </NowProvider>,
    );
    expect([...markup.matchAll(/>(\d+ min [^<]*)</g)].map(([, age]) => age)).toEqual(Array(5).fill('1 min 2 s'));
  });

  it('leaves the reason of the state to the request and to the end of the process', () => {
    const facts = (fields: Partial<SessionSummary>) =>
      renderToStaticMarkup(
        <NowProvider renderedAt={63_000}>
          <SessionFacts session={aSession(fields)} agent={null} hasLinks={false} />
        </NowProvider>,
      );
    expect(facts({ state: 'failed', stateReason: 'No credit' })).toContain('“No credit”');
    expect(facts({ state: 'needs-input', stateReason: 'Bash: rm -rf build' })).not.toContain('rm -rf');
    const process = { observedAt: 1_000, turnId: null, value: { code: 137, signal: null, reason: null } };
    const observations = { ...aSession({}).observations, process };
    const crashed = facts({ state: 'exited', stateReason: 'exit code 137', observations });
    expect(crashed.match(/exit code 137|137/gi)).toEqual(['exit code 137']);
  });

  it('shows when a late record happened, and when it was reported', () => {
    const [at, minute] = [100_000_000, 60_000];
    const reportedAt = at + 10 * minute;
    const late = (at: number) => aSession({ state: 'exited', stateSince: reportedAt, stateOccurredAt: at });
    const turn = { observedAt: reportedAt, turnId: 'r1', value: { state: 'running' as const } };
    const working = aSession({ state: 'working', observations: { ...aSession({}).observations, turn } });
    const shown = (session: SessionSummary, agent: AgentSummary | null, children: ReactElement) =>
      renderToStaticMarkup(
        <NowProvider renderedAt={reportedAt + 8 * minute}>
          <SessionLiveness session={session} agent={agent}>
            {children}
          </SessionLiveness>
        </NowProvider>,
      );
    const facts = (of: SessionSummary) => shown(of, null, <SessionFacts session={of} agent={null} hasLinks={false} />);
    expect(facts(late(at + 420_000))).toMatch(/<time[^>]*dateTime="1970-01-02T03:53:40.000Z".*reported.*8 min ago/);
    expect(renderToStaticMarkup(<SessionRow session={late(at + 420_000)} current={false} />)).toContain(
      'T03:53:40.000Z',
    );
    expect(facts(aSession({ state: 'exited', stateSince: reportedAt }))).not.toContain('reported');
    const article = <Turns turns={[{ ...open, startedAt: at }]} tasks={[]} />;
    expect(shown(working, anAgent({}), article)).toMatch(/Turn started.*reported.*8 min ago/);
    // in a flex row, each text around a time would be an item of its own
    const { document: foot } = new Window();
    foot.body.innerHTML = shown(working, anAgent({}), article);
    const rows = [...foot.querySelectorAll('article p.flex')].filter(({ textContent }) => /started/.test(textContent));
    expect(rows.map(({ childNodes }) => [...childNodes].map(({ nodeName }) => nodeName))).toEqual([['svg', 'SPAN']]);
    expect(shown(working, null, article)).not.toContain('reported');
    expect(shown(working, anAgent({ clockSkewMs: -10 * minute }), article)).toMatch(
      /Turn open for <time[^>]*>8 min 0 s</,
    );
  });

  it('takes the start of a session for its time, whenever its row was stored', () => {
    const session = { observedAt: 500_000_000, turnId: null, value: null };
    const started = aSession({ startedAt: 100_000_000, observations: { ...aSession({}).observations, session } });
    const page = (
      <NowProvider renderedAt={600_000_000}>
        <LiveProvider>
          <SessionScopeProvider sessionId={started.id} initial={null} publicUrl={null}>
            <Details session={started} />
          </SessionScopeProvider>
        </LiveProvider>
      </NowProvider>
    );
    expect(renderToStaticMarkup(page)).toMatch(/Started<\/dt><dd[^>]*><time[^>]*>[^<]*<\/time><\/dd>/);
  });

  it('pulses only after a recent signal', () => {
    const marks = (lastHeardAt: number) =>
      renderToStaticMarkup(
        <NowProvider renderedAt={63_000}>
          <SessionLiveness session={aSession({ state: 'working', lastHeardAt })} agent={null}>
            <Glyph name="working" />
          </SessionLiveness>
        </NowProvider>,
      );
    expect(marks(4_000)).not.toContain('data-still');
    expect(marks(3_000)).toContain('data-still');
  });
});

describe('countItemsAfter', () => {
  it('counts every later item', () => {
    const turns = [
      aTurn({ id: 'a', position: '1', items: [aMessage({ position: '2' })] }),
      aTurn({ id: 'b', position: '3', items: [aMessage({ position: '4' }), aCall({ position: '6' })] }),
      aTurn({ id: 'c', position: '7', items: [aMessage({ position: '8' })] }),
    ];
    expect(countItemsAfter(turns, '4', '8')).toBe(2);
    expect(countItemsAfter(turns, '8', '8')).toBe(0);
    expect(countItemsAfter([], '8', '8')).toBe(0);
  });

  it('counts a message that has grown since as one', () => {
    const turns = [aTurn({ state: 'open', items: [aMessage({ position: '2', streaming: true })] })];
    expect(countItemsAfter(turns, '5', '9')).toBe(1);
    expect(countItemsAfter(turns, '5', '5')).toBe(0);
  });
});
