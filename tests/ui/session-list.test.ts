import { describe, expect, it } from 'vitest';
import { groupSessions } from '@/components/sessions/session-groups';
import { describeState, sessionTitle } from '@/components/sessions/session-words';
import { addPage, foldSessionList } from '@/components/sessions/use-sessions';
import type { SessionList } from '@/lib/protocol/read-models';
import { aSession } from './rows';

const NONE = { failed: 0, waiting: 0, working: 0, idle: 0, done: 0 };

describe('the session list', () => {
  it('puts first what needs a person, and leaves out groups without sessions', () => {
    const states = ['done', 'idle', 'working', 'waiting', 'failed'] as const;
    const groups = groupSessions(
      states.map((state) => aSession({ id: state, state })),
      '',
    );
    expect(groups.map((group) => group.standing)).toEqual(['failed', 'waiting', 'working', 'idle', 'done']);
    expect(groupSessions([aSession({ state: 'idle' })], '')).toHaveLength(1);
  });

  it('lists apart whose runner has gone, and says of no task of theirs that it runs', () => {
    const away = { since: 5, lastHeardAt: 4, agentGoesOn: false };
    const sessions = [
      aSession({ id: 'a', state: 'failed' }),
      aSession({ id: 'b', state: 'failed', away, runningTaskCount: 2 }),
      aSession({ id: 'c', state: 'waiting', away: { ...away, agentGoesOn: true } }),
      aSession({ id: 'd', state: 'waiting' }),
    ];
    const groups = groupSessions(sessions, '').map((group) => [group.standing, ...group.sessions.map(({ id }) => id)]);
    expect(groups).toEqual([
      ['failed', 'a'],
      ['away', 'b', 'c'],
      ['waiting', 'd'],
    ]);
    expect(sessions.map(describeState)).toEqual(['Failed', 'Runner gone', 'Not watched', 'Waiting']);
  });

  it('keeps working sessions in place while they work', () => {
    const [a, b] = [
      aSession({ id: 'a', state: 'working', stateSince: 2, lastEventAt: 5 }),
      aSession({ id: 'b', state: 'working', stateSince: 1, lastEventAt: 99 }),
    ];
    expect(groupSessions([b, a], '')[0]?.sessions.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('finds whatever a row shows', () => {
    const away = { since: 5, lastHeardAt: 4, agentGoesOn: true };
    const sessions = [
      aSession({ id: 'x1', state: 'waiting', stateReason: 'Allow Bash?', lastText: 'Let me look' }),
      aSession({ id: 'x2', state: 'failed', stateReason: 'No disk left', insightCount: 2 }),
      aSession({ id: 'x3', lastTurnKind: 'between-run', runningTaskCount: 3, owedCount: 4 }),
      aSession({ id: 'x4', away, lostCount: 7, quarantinedCount: 8 }),
      aSession({ id: 'x5', state: 'done', lastText: '**All** `green` now' }),
    ];
    const found = (search: string) =>
      groupSessions(sessions, search).flatMap((group) => group.sessions.map(({ id }) => id));
    expect(found('allow bash?')).toEqual(['x1']);
    expect(found('waiting')).toEqual(['x1']);
    expect(found('no disk')).toEqual(['x2']);
    expect(found('2 hooks failed')).toEqual(['x2']);
    expect(found('woke by itself')).toEqual(['x3']);
    expect(found('3 tasks')).toEqual(['x3']);
    expect(found('owes 4')).toEqual(['x3']);
    expect(found('not watched')).toEqual(['x4']);
    expect(found('7 lost 8 quarantined')).toEqual(['x4']);
    expect(found('all green')).toEqual(['x5']);
    expect(found('**all**')).toEqual(['x5']);
  });

  it('finds by every word, in title, agent, id or last words', () => {
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

  it('says that an idle session has tasks running', () => {
    expect(describeState(aSession({ state: 'idle', runningTaskCount: 2 }))).toBe('Idle, 2 tasks running');
    expect(describeState(aSession({ state: 'idle', runningTaskCount: 1 }))).toBe('Idle, 1 task running');
    expect(describeState(aSession({ state: 'waiting' }))).toBe('Waiting');
  });

  it('calls a session by its first words as they are, or by its id', () => {
    expect(sessionTitle(aSession({ title: 'Fix \u001b[31mthe\u202e bug' }))).toBe('Fix \u001b[31mthe\u202e bug');
    expect(sessionTitle(aSession({ title: null, id: '0123456789' }))).toBe('Session 01234567');
    expect(sessionTitle(aSession({ title: 'x'.repeat(120) }))).toMatch(/…$/);
  });

  it('takes a changed row for the old one, and a new row besides', () => {
    const sessions = [aSession({ id: 'a' }), aSession({ id: 'b' })];
    const list: SessionList = {
      position: '1',
      sessions,
      hasMore: true,
      next: 'done.1.z',
      counts: { ...NONE, idle: 2 },
    };
    const next = foldSessionList(list, [
      { event: 'session', id: '2', data: aSession({ id: 'b', state: 'working' }) },
      { event: 'session', id: '3', data: aSession({ id: 'c' }) },
      { event: 'session', id: '4', data: aSession({ id: 'b', state: 'failed' }) },
    ]);
    expect([next.position, next.hasMore]).toEqual(['4', true]);
    expect(next.sessions.map(({ id, state }) => [id, state])).toEqual([
      ['a', 'idle'],
      ['b', 'failed'],
      ['c', 'idle'],
    ]);
    expect(next.sessions[0]).toBe(list.sessions[0]);
  });

  it('counts what changes of what is loaded, and asks again about what is not', () => {
    const whole = {
      position: '1',
      sessions: [aSession({ id: 'a' })],
      hasMore: false,
      next: null,
      counts: { ...NONE, idle: 1 },
    };
    const frames = [
      { event: 'session', id: '2', data: aSession({ id: 'a', state: 'failed' }) },
      { event: 'session', id: '3', data: aSession({ id: 'new', state: 'working' }) },
    ] as const;
    const next = foldSessionList(whole, [...frames]);
    expect([next.counts, next.countsAreOld]).toEqual([{ ...NONE, failed: 1, working: 1 }, false]);
    const part = foldSessionList({ ...whole, hasMore: true, next: 'idle.5.b', counts: { ...NONE, idle: 900 } }, [
      ...frames,
    ]);
    expect([part.counts, part.countsAreOld]).toEqual([{ ...NONE, failed: 1, idle: 899 }, true]);
  });

  it('takes in a further page, each session once, and of two that know it the one that knows later', () => {
    const list = {
      position: '9',
      sessions: [
        aSession({ id: 'a', updatedPosition: '9', title: 'live' }),
        aSession({ id: 'b', updatedPosition: '2' }),
      ],
      hasMore: true,
      next: 'idle.5.b',
      counts: { ...NONE, idle: 3 },
    };
    const page = {
      position: '8',
      sessions: [
        aSession({ id: 'a', updatedPosition: '5', title: 'older' }),
        aSession({ id: 'b', updatedPosition: '8', title: 'newer' }),
        aSession({ id: 'c' }),
      ],
      hasMore: false,
      next: null,
      counts: { ...NONE, idle: 4 },
    };
    const all = addPage(list, page);
    expect(all.sessions.map(({ id, title }) => [id, title])).toEqual([
      ['a', 'live'],
      ['b', 'newer'],
      ['c', 'Do it'],
    ]);
    expect([all.next, all.hasMore, all.counts.idle, all.position]).toEqual([null, false, 4, '9']);
  });
});
