import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';
import { type AgentState, noListed, noSessions } from '@interlude/protocol/session-states';
import { expect, it } from 'vitest';
import {
  isDisconnected,
  leadOf,
  ShownWork,
  sessionsInWords,
  stalledAgents,
  workByAgent,
} from '@/components/agents/board-agent';
import { BoardSorter, exceptionsOf, gridOf, usualColumns } from '@/components/agents/board-columns';
import { columnsFrom, isOnBoard, UNFILTERED_BOARD } from '@/components/agents/board-filter';
import { anAgent, aSession } from './rows';

const inState = (state: AgentState, since: number, id: string = state, fields: Partial<AgentSummary> = {}) =>
  anAgent({ id, listedStates: { ...noListed(), [state]: 1 }, sessionCount: 1, stateSince: since, ...fields });

it('sorts by urgency, those without progress first, then by the longest wait, and quiet agents by name', () => {
  const agents = [
    inState('exited', 1),
    inState('idle', 9, 'idle-b'),
    inState('idle', 10, 'idle-a'),
    inState('seen', 1),
    inState('waiting-on-background', 1),
    inState('working', 1),
    inState('lost', 1),
    inState('failed', 1),
    inState('needs-input', 5, 'asks-later'),
    inState('needs-input', 4, 'asks-first'),
    anAgent({ id: 'empty' }),
    inState('working', 30, 'stalled'),
  ];
  const evidence = { rule: 16, source: 'turn', observedAt: 1, note: 'no-progress' } as const;
  const sessions = ['stalled', 'asks-later'].map((agentId) => aSession({ id: agentId, agentId, evidence }));
  const stalled = new Set<string>(JSON.parse(stalledAgents(sessions)));
  const sorted = new BoardSorter().sort(agents, UNFILTERED_BOARD, stalled);
  expect(sorted).toEqual([
    ...['asks-first', 'asks-later', 'failed', 'lost', 'stalled', 'working', 'waiting-on-background'],
    ...['idle-a', 'idle-b', 'seen', 'exited', 'empty'],
  ]);
});

it('lists an agent only under the state that its row shows', () => {
  const listedStates = { ...noListed(), failed: 1, working: 2, idle: 5 };
  const mixed = anAgent({ listedStates, sessionCount: 8 });
  const isIn = (state: AgentState) => isOnBoard(mixed, { ...UNFILTERED_BOARD, states: [state] });
  expect([isIn('failed'), isIn('working')]).toEqual([true, false]);
  expect(sessionsInWords(mixed)).toBe('8 sessions: 1 failed · 2 working · 5 idle');
});

it('chooses the most urgent session of an agent, of several the one without progress, then the newest', () => {
  const stalled = { rule: 16, source: 'turn', observedAt: 1, note: 'no-progress' } as const;
  const sessions = [
    aSession({ id: 'idle', stateSince: 9 }),
    aSession({ id: 'old', state: 'working', stateSince: 1 }),
    aSession({ id: 'new', state: 'working', stateSince: 2, isEnding: true }),
  ];
  const lead = (...more: typeof sessions) => workByAgent([...sessions, ...more]).get('agent-1')?.lead.id;
  expect(lead()).toBe('new');
  expect(lead(aSession({ id: 'stuck', state: 'working', stateSince: 0, evidence: stalled }))).toBe('stuck');
  expect(lead(aSession({ id: 'asks', state: 'needs-input', stateSince: 0 }))).toBe('asks');
  const work = workByAgent(sessions).get('agent-1');
  expect(work?.endingCount).toBe(1);
  expect([inState('working', 1), inState('failed', 1)].map((agent) => leadOf(agent, work)?.id)).toEqual([
    'new',
    undefined,
  ]);
});

it('keeps the shown work of an agent until its row has to change', () => {
  const works = new ShownWork();
  const shown = (fields: Partial<SessionSummary>) =>
    works.read([aSession({ state: 'working', ...fields }), aSession()]);
  const first = shown({ lastText: 'a' });
  expect(shown({ lastText: 'b', lastEventAt: 2 })).toBe(first);
  const ending = shown({ isEnding: true });
  expect([ending === first, ending.get('agent-1')?.endingCount]).toEqual([false, 1]);
  expect(shown({ isEnding: true, title: 'Other' }).get('agent-1')?.lead.title).toBe('Other');
});

it('counts the sessions by state only if there are several', () => {
  const idle = (count: number) => anAgent({ sessionStates: { ...noSessions(), idle: count } });
  expect([0, 1, 3].map((count) => sessionsInWords(idle(count)))).toEqual(['', '', '3 sessions: 3 idle']);
});

it('names exceptions below the name unless a column shows them', () => {
  const agent = anAgent({ owedCount: 3, overdueCount: 1, lostCount: 2, quarantinedCount: 3, parkedCount: 1 });
  expect(exceptionsOf(agent, [])).toBe('1 reply overdue · 2 records lost · 2 rejected · 1 unassigned');
  expect(exceptionsOf(agent, ['owed', 'ledger'])).toBe('');
  expect(exceptionsOf(anAgent({ owedCount: 3 }), [])).toBe('');
});

it('shows a missing runner only while sessions are open', () => {
  const away = { connection: 'away', connectedSince: 5 } as const;
  const agents = [
    inState('idle', 1, 'a', away),
    inState('exited', 1, 'b', away),
    inState('idle', 1, 'c', { ...away, connectedSince: null }),
    inState('idle', 1, 'd', { ...away, retiredAt: 5 }),
    inState('idle', 1, 'e', { ...away, connection: 'connected' }),
  ];
  expect(agents.map(isDisconnected)).toEqual([true, false, false, false, false]);
});

it('leaves out a column that has the same value in every row', () => {
  const on = (host: string) => anAgent({ id: host, kind: 'claude', status: { host } });
  expect(usualColumns([on('a'), on('b')])).toEqual(['state', 'host', 'sessions', 'tasks', 'seen']);
  expect(usualColumns([on('a')])).toEqual(['state', 'provider', 'host', 'sessions', 'tasks', 'seen']);
});

it('reads chosen columns in display order, and gives text columns the width of their contents', () => {
  const columns = columnsFrom('seen.nonsense.host.name.state');
  expect(columns).toEqual(['state', 'host', 'seen']);
  const long = anAgent({ status: { host: 'a-host-with-a-long-name' } });
  expect(gridOf(['name', 'host', 'seen'], [long])).toBe('20px minmax(0,9fr) minmax(0,23fr) 66px');
});
