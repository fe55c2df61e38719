import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { readAgentStatus } from '@interlude/protocol/agent-status';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { parseReportedStatus } from '@interlude/protocol/projections/reported-status';
import {
  differsForReaders,
  newSession,
  type SessionFold,
  SessionLedger,
} from '@interlude/protocol/projections/session-summary';
import { placeEvents } from '@interlude/protocol/projections/turns';
import { wentSilent } from '@interlude/protocol/session-predicates';
import { describe, expect, it } from 'vitest';
import { foldSession, foldTasks } from '@/tests/support/memory-log';
import { custom, runEnds, runStarts, says, taskEnds, taskStarts, userSays, wokenBy } from './session-story';

function summaryOf(...chapters: AgUiEvent[][]): SessionFold {
  const entries = chapters
    .flat()
    .map((event, index) => ({ position: String(index + 1), occurredAt: 100 + index, receivedAt: 1, event }));
  const { placements } = placeEvents(NO_PLACES, entries);
  const tasks = foldTasks([], placements, { sessionId: 's1', agentId: 'a1' }).map((after) => ({ before: null, after }));
  return foldSession(newSession('s1', 'a1', 1), placements, tasks);
}

describe('a session', () => {
  it.each([
    ['is starting before anything was observed of it', [], { state: 'starting', title: null }],
    ['works while a turn is open', [runStarts('r1')], { state: 'working', openTurnId: 'r1', turnCount: 1 }],
    [
      'waits between turns on the tasks that run, and says how many',
      [runStarts('r1'), taskStarts('b1'), runEnds('r1')],
      { state: 'waiting-on-background', runningTaskCount: 1 },
    ],
    [
      'has failed when its last turn did',
      [runStarts('r1'), [{ type: 'RUN_ERROR', message: 'No credit' }]],
      { state: 'failed', stateReason: 'No credit' },
    ],
    [
      'works again once a new turn opens after a failed one',
      [runStarts('r1'), [{ type: 'RUN_ERROR', message: 'x' }], runStarts('r2')],
      { state: 'working' },
    ],
    [
      'waits while a request is open, also in a turn',
      [runStarts('r1'), custom('request:opened', { request_id: 'q', title: 'Run rm?' })],
      { state: 'needs-input', stateReason: 'Run rm?', pendingRequestCount: 1 },
    ],
    [
      'waits no more once the request is resolved',
      [runStarts('r1'), custom('request:opened', { request_id: 'q' }), custom('request:resolved', { request_id: 'q' })],
      { state: 'working', pendingRequestCount: 0 },
    ],
    [
      'has exited when its agent ended well',
      [runStarts('r1'), runEnds('r1'), custom('session:ended', { reason: 'exit', exitCode: 0 })],
      { state: 'exited', evidence: { rule: 1, source: 'process' } },
    ],
    [
      'has exited when its agent died, and says how',
      [runStarts('r1'), custom('session:ended', { reason: 'killed', exitCode: 137, signal: 'SIGKILL' })],
      {
        state: 'exited',
        stateReason: 'killed by SIGKILL',
        openTurnId: null,
        observations: { process: { value: { code: 137, signal: 'SIGKILL', reason: 'killed' } } },
      },
    ],
    [
      'has exited when its agent ends well after a failed turn',
      [runStarts('r1'), [{ type: 'RUN_ERROR', message: 'No credit' }], custom('session:ended', { reason: 'exit' })],
      { state: 'exited', stateReason: null },
    ],
    ['knows when the agent woke by itself', [runStarts('r1', wokenBy('b1'))], { lastTurnKind: 'between-run' }],
    ['counts what was lost', [custom('interlude:lost', { count: 3, reason: 'x' })], { lostCount: 3 }],
    ['counts no task that has ended', [taskStarts('b1'), taskEnds('b1', 'failed')], { runningTaskCount: 0 }],
  ] as const)('%s', (_name, chapters, expected) => {
    expect(summaryOf(...(chapters as unknown as AgUiEvent[][])).summary).toMatchObject(expected);
  });

  const gone = (goesOn = false) => custom('runner:away', { since: 500, last_heard_at: 400, agent_goes_on: goesOn });
  it.each([
    [
      'is unknown once its runner has gone in the middle of a turn, and names the evidence',
      [runStarts('r1'), gone()],
      {
        state: 'unknown',
        evidence: { rule: 3, source: 'connection', last: 'working' },
        away: { since: 500, lastHeardAt: 400, agentGoesOn: false },
        openTurnId: 'r1',
      },
    ],
    ['is unknown where its agent goes on unseen', [runStarts('r1'), gone(true)], { state: 'unknown' }],
    [
      'is unknown where nothing was under way when its runner went, and says that it was idle',
      [runStarts('r1'), runEnds('r1'), gone()],
      { state: 'unknown', stateReason: 'its runner has gone', evidence: { last: 'idle' } },
    ],
    [
      'keeps what the agent said of its own end',
      [runStarts('r1'), gone(), custom('session:ended', { reason: 'killed', exitCode: 137 })],
      { state: 'exited', stateReason: 'exit code 137: killed', away: null },
    ],
    [
      'says that its last turn had failed, though a task ran',
      [taskStarts('b1'), runStarts('r1'), [{ type: 'RUN_ERROR', message: 'No credit' }], gone()],
      { state: 'unknown', evidence: { last: 'failed' } },
    ],
    ['works again once its runner is back', [runStarts('r1'), gone(), custom('runner:back', {})], { state: 'working' }],
  ] as const)('%s', (_name, chapters, expected) => {
    expect(summaryOf(...(chapters as unknown as AgUiEvent[][])).summary).toMatchObject(expected);
  });

  it('is back with the next agent event, not a server event', () => {
    const missed = summaryOf(runStarts('r1'), gone());
    const { placements } = placeEvents(NO_PLACES, [
      { position: '9', occurredAt: 999, receivedAt: 1_500, event: { type: 'CUSTOM', name: 'marker' } },
    ]);
    expect(foldSession(missed, placements, []).summary.state).toBe('unknown');
    const heard = foldSession(missed, placements, [], [], 1_500);
    expect(heard.summary).toMatchObject({ state: 'working', away: null, lastHeardAt: 1_500 });
  });

  it('continues from the memory that version 0.1.0 stored', () => {
    const fold = newSession('s1', 'a1', 1);
    const messages = { count: 1, claimed: { message: 1, turn: 1 }, unclaimed: [], ids: ['u1'] };
    const stored = { messages, turnIds: ['r1'], reportTurn: 1, reportAt: null, reportAfter: 1, hasSpoken: true };
    const observed = stored as unknown as SessionFold['observed'];
    const entries = userSays('u2', 'And?').map((event, index) => ({
      ...{ position: String(index + 1), occurredAt: 1, receivedAt: 1 },
      event,
    }));
    const { observed: after } = foldSession({ ...fold, observed }, placeEvents(NO_PLACES, entries).placements, []);
    expect(after.messages).toMatchObject({ count: 2, claimed: { message: 1, turn: 1 }, unclaimed: [{ id: 'u2' }] });
  });

  it('has the first line of the first message as title', () => {
    const [start, , end] = userSays('u1', '') as [AgUiEvent, AgUiEvent, AgUiEvent];
    const delta = (text: string): AgUiEvent => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'u1', delta: text });
    const fold = summaryOf(
      [start, delta('Mend the '), delta('tests\nand'), delta(' more'), end],
      userSays('u2', 'Other'),
    );
    expect(fold.summary.title).toBe('Mend the tests');
  });

  it('has no local command as title', () => {
    const local = (id: string, text: string): AgUiEvent[] => [
      ...userSays(id, text),
      ...runStarts(`r-${id}`),
      ...runEnds(`r-${id}`, { userMessageIds: [id] }).map((event) => ({
        ...event,
        result: { terminalReason: 'local_command' },
      })),
    ];
    expect(summaryOf(local('u1', '/clear')).summary.title).toBeNull();
    const fold = summaryOf(local('u1', '/clear'), userSays('u2', 'Mend the tests'), local('u3', '/model'));
    expect(fold.summary.title).toBe('Mend the tests');
  });

  it('keeps the runner’s time of its newest event if it was received late', () => {
    const events = [...runStarts('r1'), ...runEnds('r1')];
    const lastOf = (...ages: number[]) => {
      const entries = ages.map((age, at) => ({
        position: String(at + 1),
        occurredAt: 900_000 - age,
        receivedAt: 900_000,
        event: events[at] as AgUiEvent,
      }));
      return foldSession(newSession('s1', 'a1', 1), placeEvents(NO_PLACES, entries).placements, []).summary;
    };
    expect(lastOf(600_000, 300_000).lastOccurredAt).toBe(600_000);
    expect(lastOf(600_000, 60_000)).not.toHaveProperty('lastOccurredAt');
  });

  it('is ending until the command fails, the session ends, a turn starts or the runner disconnects', () => {
    const command = (state: string, type = 'session.end') =>
      custom(`command:${state}`, { command_id: 'c1', type }) as AgUiEvent[];
    const isEnding = (...chapters: AgUiEvent[][]) => summaryOf(runStarts('r1'), ...chapters).summary.isEnding;
    expect(isEnding(command('queued', 'interrupt'))).toBeUndefined();
    expect(isEnding(command('queued'))).toBe(true);
    expect(isEnding(command('queued'), command('done'))).toBe(true);
    for (const last of [command('failed'), custom('session:ended', {}), runStarts('r2')]) {
      expect(isEnding(command('queued'), last)).toBeUndefined();
    }
    const away = custom('runner:away', { since: 5 });
    expect(isEnding(command('queued'), away)).toBeUndefined();
    expect(isEnding(away, command('done'), custom('runner:back', {}))).toBeUndefined();
    expect(isEnding(command('queued'), custom('session:ended', {}), command('done'))).toBeUndefined();
  });

  it('is truncated between characters', () => {
    const fold = summaryOf(userSays('u1', `${'a'.repeat(119)}🚀`), says('m1', `${'b'.repeat(239)}🚀`));
    expect(fold.summary.title).toBe('a'.repeat(119));
    expect(fold.summary.lastText).toBe('b'.repeat(239));
  });

  it('previews the newest answer, not subagent text', () => {
    const fold = summaryOf(
      says('m1', 'First'),
      says('m2', 'Second'),
      says('m3', 'Sub', 'assistant', { subagentRunId: 'a1' }),
    );
    expect(fold.summary.lastText).toBe('Second');
  });

  it('has the status key that earlier versions store', () => {
    const status = { openTurnId: null, wakeable: true, process: { state: 'running', pid: 5, exitCode: null } };
    expect(parseReportedStatus(readAgentStatus(status), 0)?.key).toBe(
      '[{"report":null,"agent":"still","process":"there","isWakeable":true,"cpuSeconds":null},null]',
    );
  });

  it('is wakeable according to its newest status', () => {
    const heard = (fold: SessionFold, status: object) => {
      const told = parseReportedStatus(readAgentStatus(status as Record<string, unknown>), 0);
      const ledger = new SessionLedger(fold, 2);
      if (told !== null) ledger.applyStatus(told, 2);
      return ledger.result([], 2);
    };
    const before = newSession('s1', 'a1', 1);
    const listens = heard(before, { wakeable: true });
    const not = heard(listens, { wakeable: false });
    expect([listens.summary.wakeable, not.summary.wakeable]).toEqual([true, false]);
    expect('wakeable' in heard(not, { state: 'still' }).summary).toBe(false);
    expect(differsForReaders(listens, not)).toBe(true);
  });

  describe('with an unreachable agent', () => {
    const [RUNNER_AHEAD, AT] = [3_600_000, 10_000_000];
    const heard = (fold: SessionFold, unreachable: object | undefined, at: number) => {
      const told = parseReportedStatus(readAgentStatus({ openTurnId: null, unreachable }), at + RUNNER_AHEAD);
      const ledger = new SessionLedger(fold, at);
      if (told !== null) ledger.applyStatus(told, at);
      return ledger.result([], at);
    };
    const outage = { since: AT - 20_000 + RUNNER_AHEAD, reason: 'no answer', last: 'working' };

    it('is unknown from the first failed attempt until the agent answers', () => {
      const lost = heard(newSession('s1', 'a1', 1), outage, AT);
      const away = { since: AT - 20_000, isUnreachable: true, reason: 'no answer', last: 'working' };
      expect(lost.summary).toMatchObject({
        state: 'unknown',
        away,
        stateReason: 'the agent is unreachable: no answer',
      });
      const later = heard(lost, { ...outage, last: undefined }, AT + 60_007);
      expect(later.summary.away).toEqual(lost.summary.away);
      expect(heard(later, undefined, AT + 90_000).summary).toMatchObject({ state: 'idle', away: null });
    });

    it('is idle if only a message was pending', () => {
      const wrote = summaryOf(userSays('u1', 'Are you there?'));
      const { summary } = heard(wrote, { ...outage, last: undefined }, AT);
      expect([summary.state, summary.evidence.last, wentSilent(summary)]).toEqual(['unknown', 'idle', false]);
    });

    it('is away while its runner is gone too, then unreachable again', () => {
      const lost = heard(newSession('s1', 'a1', 1), outage, AT);
      const gone = { ...lost, away: { since: AT + 5, lastHeardAt: AT, agentGoesOn: true } };
      const { summary } = new SessionLedger(gone, null).result([], AT + 10);
      expect([summary.away?.since, summary.away?.isUnreachable]).toEqual([AT + 5, undefined]);
      expect(heard(gone, outage, AT + 20).summary.away).toEqual(lost.summary.away);
    });
  });

  it('dates states and events by the server’s clock', () => {
    const { placements } = placeEvents(NO_PLACES, [
      { position: '9', occurredAt: 8e15, receivedAt: 700, event: runStarts('r1')[0] as AgUiEvent },
    ]);
    const { summary } = foldSession(newSession('s1', 'a1', 1), placements, []);
    expect(summary).toMatchObject({ state: 'working', stateSince: 700, lastEventAt: 700 });
  });

  it('differs for readers when a deadline appears or disappears', () => {
    const asks = (until: object) => custom('request:opened', { request_id: 'q', title: 'Run rm?', ...until });
    const before = summaryOf(runStarts('r1'), asks({ expires_at: 10_000 }));
    const after = summaryOf(runStarts('r1'), asks({}));
    expect([before.summary.answerBy, after.summary.answerBy]).toEqual([expect.any(Number), undefined]);
    expect([differsForReaders(before, after), differsForReaders(after, before)]).toEqual([true, true]);
  });

  it('has the first pending request on one line, and does not differ for readers while it stays', () => {
    const asks = (id: string, command: string) =>
      custom('request:opened', { request_id: id, title: 'Bash: ls && …', tool_name: 'Bash', input: { command } });
    const before = summaryOf(runStarts('r1'), asks('q', 'ls &&\n pwd'));
    expect(before.summary.request).toEqual({ kind: 'permission', tool: 'Bash', line: 'ls && pwd' });
    const placed = placeEvents(NO_PLACES, [
      { position: '9', occurredAt: 9, receivedAt: 9, event: asks('q2', 'rm')[0] as AgUiEvent },
    ]);
    expect(foldSession(before, placed.placements, []).summary.request).toBe(before.summary.request);
    const after = summaryOf(runStarts('r1'), asks('q', 'ls'), custom('request:resolved', { request_id: 'q' }));
    expect(after.summary.request).toBeUndefined();
  });

  it('does not differ for readers while text grows', () => {
    const before = summaryOf(runStarts('r1'), says('m1', 'a'));
    const { placements } = placeEvents(NO_PLACES, [
      {
        position: '9',
        occurredAt: 999,
        receivedAt: 1,
        event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'b' },
      },
    ]);
    const after = foldSession(before, placements, []);
    expect(after.summary.lastText).toBe('ab');
    expect(differsForReaders(before, after)).toBe(false);
    expect(differsForReaders(summaryOf(), before)).toBe(true);
  });
});
