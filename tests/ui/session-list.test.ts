import type { AgentSummary, SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { needsAttention } from '@interlude/protocol/session-predicates';
import { noSessions, SESSION_GROUPS, SESSION_STATES, type SessionState } from '@interlude/protocol/session-states';
import { describe, expect, it, vi } from 'vitest';
import { ALL, FleetStore } from '@/components/live/fleet-store';
import { describeState, lastLine, marksOf, sessionTitle } from '@/components/sessions/session-labels';
import { groupSessions } from '@/components/sessions/session-nav';
import { anAgent, anInboxItem, aSession, someCounts } from './rows';

const NONE = noSessions();

/** A session that went silent in this state. */
const unknown = (last: SessionState) => ({
  state: 'unknown' as const,
  evidence: { rule: 3 as const, source: 'connection' as const, observedAt: 4, last },
});
const exited = (code: number) => ({
  state: 'exited' as const,
  observations: {
    session: { observedAt: 1, turnId: null, value: null },
    process: { observedAt: 5, turnId: null, value: { code, signal: null, reason: null } },
  },
});

describe('the session list', () => {
  it('orders groups by urgency and omits empty ones', () => {
    const states = [...SESSION_STATES].reverse();
    const groups = groupSessions(
      states.map((state) => aSession({ id: state, state })),
      '',
    );
    const ofState = SESSION_GROUPS.filter((group) => SESSION_STATES.some((state) => state === group));
    expect(groups.map(({ group }) => group)).toEqual(ofState);
    expect(groupSessions([aSession({ state: 'idle' })], '')).toHaveLength(1);
  });

  it('lists sessions without progress first in their group, then by the newest state', () => {
    const evidence = { rule: 16, source: 'turn', observedAt: 1, note: 'no-progress' } as const;
    const sessions = [
      aSession({ id: 'new', state: 'working', stateSince: 9 }),
      aSession({ id: 'old', state: 'working', stateSince: 1 }),
      aSession({ id: 'stalled', state: 'working', stateSince: 2, evidence }),
      aSession({ id: 'stalled-later', state: 'working', stateSince: 3, evidence }),
    ];
    const [working] = groupSessions(sessions, '');
    expect(working?.sessions.map(({ id }) => id)).toEqual(['stalled-later', 'stalled', 'new', 'old']);
  });

  it('groups sessions that went silent during work, without running tasks', () => {
    const away = { since: 5, lastHeardAt: 4, agentGoesOn: false };
    const sessions = [
      aSession({ id: 'a', state: 'failed' }),
      aSession({ id: 'b', ...unknown('working'), away, runningTaskCount: 2 }),
      aSession({ id: 'c', ...unknown('needs-input'), away: { ...away, agentGoesOn: true } }),
      aSession({ id: 'd', state: 'needs-input' }),
      aSession({ id: 'e', ...unknown('idle'), away }),
      // as older versions stored it
      aSession({ id: 'f', ...exited(137), stateReason: 'exit' }),
      aSession({ id: 'g', ...exited(0) }),
    ];
    const groups = groupSessions(sessions, '').map(({ group, sessions }) => [group, ...sessions.map(({ id }) => id)]);
    expect(groups).toEqual([
      ['needs-input', 'd'],
      ['failed', 'a', 'f'],
      ['lost', 'b', 'c'],
      ['unknown', 'e'],
      ['exited', 'g'],
    ]);
    expect(lastLine(sessions[5] as SessionSummary, true)).toBe('Exit code 137');
    expect(sessions.map(describeState)).toEqual([
      'Failed',
      'Unknown (last: working)',
      'Unknown (last: needs input)',
      'Needs input',
      'Unknown (last: idle)',
      'Failed, exit code 137',
      'Exited',
    ]);
  });

  it('marks pending replies only of sessions that can reply, and overdue ones of all', () => {
    const marks = (fields: Partial<SessionSummary>) =>
      marksOf(aSession({ owedCount: 1, ...fields })).map(({ text }) => text);
    expect(marks({ state: 'working' })).toEqual(['1 pending reply']);
    for (const state of ['needs-input', 'failed', 'exited'] as const) expect(marks({ state })).toEqual([]);
    expect(marks({ state: 'failed', overdueCount: 1 })).toEqual(['1 reply overdue']);
  });

  it('marks a session that was asked to end', () => {
    const session = aSession({ state: 'needs-input', isEnding: true });
    expect(describeState(session)).toBe('Needs input, ending');
    expect(marksOf(session).map(({ text }) => text)).toEqual(['ending']);
  });

  it('groups pinned, archived and seen failed sessions apart unless they are urgent', () => {
    const NOW = 1_795_170_000_000;
    const made = { name: null, pinnedAt: null, archivedAt: null, seenState: null };
    const failed = (id: string, fields: Partial<SessionSummary>) =>
      aSession({ id, state: 'failed', stateSince: NOW - 60_000, ...fields });
    const sessions = [
      failed('new', {}),
      failed('new-pinned', { arrangement: { ...made, pinnedAt: 5 } }),
      failed('seen', { arrangement: { ...made, seenState: NOW - 60_000 } }),
      failed('again', { arrangement: { ...made, seenState: NOW - 90_000 } }),
      failed('old', { stateSince: NOW - 25 * 3_600_000 }),
      aSession({ id: 'pinned', arrangement: { ...made, pinnedAt: 5 } }),
      aSession({ id: 'archived', arrangement: { ...made, pinnedAt: 5, archivedAt: 6 } }),
      aSession({ id: 'asks', state: 'needs-input', stateSince: NOW - 25 * 3_600_000 }),
    ];
    const groups = groupSessions(sessions, '').map(({ group, sessions }) => [group, ...sessions.map(({ id }) => id)]);
    expect(groups).toEqual([
      ['needs-input', 'asks'],
      ['failed', 'new', 'new-pinned', 'again', 'old'],
      ['pinned', 'pinned'],
      ['seen', 'seen'],
      ['archived', 'archived'],
    ]);
    expect(sessions.filter(needsAttention)).toHaveLength(5);
    // found by its current group
    expect(groupSessions(sessions, 'failed, seen').map(({ group }) => group)).toEqual(['seen']);
  });

  it('uses a session’s given name as title', () => {
    const named = aSession({
      arrangement: { name: 'The login test', pinnedAt: null, archivedAt: null, seenState: null },
    });
    expect(sessionTitle(named)).toBe('The login test');
    expect(groupSessions([named], 'login')).toHaveLength(1);
  });

  it('keeps working sessions in place while they work', () => {
    const [a, b] = [
      aSession({ id: 'a', state: 'working', stateSince: 2, lastEventAt: 5 }),
      aSession({ id: 'b', state: 'working', stateSince: 1, lastEventAt: 99 }),
    ];
    expect(groupSessions([b, a], '')[0]?.sessions.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('finds everything that a row shows', () => {
    const away = { since: 5, lastHeardAt: 4, agentGoesOn: true };
    const sessions = [
      aSession({ id: 'x1', state: 'needs-input', stateReason: 'Allow Bash?', lastText: 'Let me look' }),
      aSession({ id: 'x2', state: 'failed', stateReason: 'No disk left', insightCount: 2 }),
      aSession({ id: 'x3', lastTurnKind: 'between-run', runningTaskCount: 3, owedCount: 4 }),
      aSession({ id: 'x4', ...unknown('idle'), away, lostCount: 7, quarantinedCount: 8 }),
      aSession({ id: 'x5', state: 'exited', lastText: '**All** `green` now' }),
    ];
    const found = (search: string) =>
      groupSessions(sessions, search).flatMap((group) => group.sessions.map(({ id }) => id));
    expect(found('allow bash?')).toEqual(['x1']);
    expect(found('needs input')).toEqual(['x1']);
    expect(found('no disk')).toEqual(['x2']);
    expect(found('2 hooks failed')).toEqual(['x2']);
    expect(found('woke by itself')).toEqual(['x3']);
    expect(found('3 tasks')).toEqual(['x3']);
    expect(found('4 pending replies')).toEqual(['x3']);
    expect(found('unknown')).toEqual(['x4']);
    expect(found('7 lost 8 rejected')).toEqual(['x4']);
    expect(found('all green')).toEqual(['x5']);
    expect(found('**all**')).toEqual(['x5']);
  });

  it('matches every word in title, agent, id or last text', () => {
    const sessions = [
      aSession({ id: 'x1', title: 'Deploy staging', agentId: 'blue' }),
      aSession({ id: 'x2', title: 'Run tests', lastText: 'All staging checks pass' }),
    ];
    const ids = (search: string) =>
      groupSessions(sessions, search).flatMap((group) => group.sessions.map(({ id }) => id));
    expect(ids('STAGING')).toEqual(['x1', 'x2']);
    expect(ids('staging blue')).toEqual(['x1']);
    expect(ids('x2')).toEqual(['x2']);
    expect(ids('nothing')).toEqual([]);
  });

  it('describes an idle session with running tasks', () => {
    expect(describeState(aSession({ state: 'idle', runningTaskCount: 2 }))).toBe('Idle, 2 tasks running');
    expect(describeState(aSession({ state: 'idle', runningTaskCount: 1 }))).toBe('Idle, 1 task running');
    expect(describeState(aSession({ state: 'waiting-on-background', runningTaskCount: 2 }))).toBe(
      'Waiting on background, 2 tasks running',
    );
    expect(describeState(aSession({ state: 'needs-input' }))).toBe('Needs input');
  });

  it('uses a session’s first words or its id as title', () => {
    expect(sessionTitle(aSession({ title: 'Fix \u001b[31mthe\u202e bug' }))).toBe('Fix \u001b[31mthe\u202e bug');
    expect(sessionTitle(aSession({ title: null, id: '0123456789' }))).toBe('Session 0123456789');
    const untitled = ['bulk-session-of-monday-1', 'bulk-session-of-monday-2'];
    expect(untitled.map((id) => sessionTitle(aSession({ title: null, id })))).toEqual([
      'Session bulk-ses…onday-1',
      'Session bulk-ses…onday-2',
    ]);
    expect(sessionTitle(aSession({ title: 'x'.repeat(120) }))).toMatch(/…$/);
  });

  /** A page with this initial list. */
  function shown(list: Pick<SessionList, 'sessions' | 'next' | 'counts' | 'position'>) {
    const fleet = new FleetStore();
    const page = (one: typeof list) => ({ ...one, hasMore: one.next !== null });
    fleet.putSessions(page(list));
    return {
      fleet,
      now: () => {
        const { rows: sessions = [], next = null } = fleet.sessions.list(ALL) ?? {};
        return { sessions, next, counts: fleet.counts?.sessions };
      },
      news: (id: string, data: SessionSummary) =>
        fleet.applyFrames([{ event: 'session', id, data: { ...data, updatedPosition: id } }]),
      more: (one: typeof list) => fleet.putSessions(page(one), list.next ?? undefined),
    };
  }

  it('replaces a changed row and adds a new one', () => {
    const sessions = [aSession({ id: 'a' }), aSession({ id: 'b' })];
    const { fleet, now, news } = shown({
      position: '1',
      sessions,
      next: 'done.1.z',
      counts: { ...NONE, idle: 2 },
    });
    news('2', aSession({ id: 'b', state: 'working' }));
    news('3', aSession({ id: 'c' }));
    news('4', aSession({ id: 'b', state: 'failed' }));
    expect([fleet.start, now().next]).toEqual([{ after: '1' }, 'done.1.z']);
    expect(now().sessions.map(({ id, state }) => [id, state])).toEqual([
      ['a', 'idle'],
      ['b', 'failed'],
      ['c', 'idle'],
    ]);
    expect(now().sessions[0]).toBe(sessions[0]);
  });

  it('renders the first change at once, and further ones together', async () => {
    vi.useFakeTimers();
    const { fleet, news } = shown({ position: '1', sessions: [aSession({ id: 'a' })], next: null, counts: NONE });
    await vi.advanceTimersByTimeAsync(200);
    const render = vi.fn();
    fleet.subscribe(render);
    for (let change = 2; change < 40; change += 1) {
      news(String(change), aSession({ id: 'a' }));
      await vi.advanceTimersByTimeAsync(5);
    }
    expect(render).toHaveBeenCalledTimes(4);
    await vi.advanceTimersByTimeAsync(200);
    expect(render).toHaveBeenCalledTimes(5);
    vi.useRealTimers();
  });

  it('needs new counts after a change of a state, an item or an agent, and after a gap', () => {
    const counts = someCounts({ position: '3', sessions: { ...NONE, lost: 0, idle: 900 } });
    const { fleet, now, news } = shown({
      position: '3',
      sessions: [aSession({ id: 'a', updatedPosition: '2' })],
      next: 'idle.5.b',
      counts: NONE,
    });
    const isOld = () => {
      const old = fleet.countsAreOld;
      fleet.putCounts({ ...counts, position: fleet.position ?? '3' });
      return old;
    };
    expect(isOld()).toBe(true);
    expect([isOld(), now().counts?.idle]).toEqual([false, 900]);
    news('4', aSession({ id: 'a', lastText: 'more' }));
    expect(isOld()).toBe(false);
    news('5', aSession({ id: 'a', state: 'failed' }));
    expect(isOld()).toBe(true);
    news('6', aSession({ id: 'new' }));
    expect(isOld()).toBe(true);
    const arrangement = { name: null, pinnedAt: null, archivedAt: 5, seenState: null };
    news('7', aSession({ id: 'new', arrangement }));
    expect(isOld()).toBe(true);
    fleet.applyFrames([{ event: 'inbox', id: '8', data: anInboxItem({ updatedPosition: '8' }) }]);
    expect(isOld()).toBe(true);
    const agent = (id: string, fields: Partial<AgentSummary> = {}) =>
      fleet.applyFrames([{ event: 'agent', id, data: anAgent({ updatedPosition: id, ...fields }) }]);
    agent('9');
    expect(isOld()).toBe(true);
    agent('10');
    expect(isOld()).toBe(false);
    agent('11', { state: 'failed' });
    expect(isOld()).toBe(true);
    agent('12', { state: 'failed', retiredAt: 5 });
    expect(isOld()).toBe(true);
    fleet.reset();
    expect([isOld(), isOld()]).toEqual([true, false]);
  });

  it('ignores counts that are older than those shown', () => {
    const { fleet, now } = shown({ position: '3', sessions: [], next: null, counts: NONE });
    fleet.putCounts(someCounts({ position: '5', sessions: { ...NONE, lost: 0, idle: 5 } }));
    fleet.putCounts(someCounts({ position: '4', sessions: { ...NONE, lost: 0, idle: 4 } }));
    expect(now().counts?.idle).toBe(5);
  });

  it('adds a further page without duplicates and keeps the later version of a row', () => {
    const { now, news, more } = shown({
      position: '1',
      sessions: [aSession({ id: 'a' }), aSession({ id: 'b' })],
      next: 'idle.5.b',
      counts: { ...NONE, idle: 3 },
    });
    news('9', aSession({ id: 'a', title: 'live' }));
    more({
      position: '8',
      sessions: [
        aSession({ id: 'a', updatedPosition: '5', title: 'older' }),
        aSession({ id: 'b', updatedPosition: '8', title: 'newer' }),
        aSession({ id: 'c' }),
      ],
      next: null,
      counts: { ...NONE, idle: 4 },
    });
    expect(now().sessions.map(({ id, title }) => [id, title])).toEqual([
      ['a', 'live'],
      ['b', 'newer'],
      ['c', 'Do it'],
    ]);
    expect(now().next).toBeNull();
  });
});
