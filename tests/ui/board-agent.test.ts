import { noSessions } from '@interlude/protocol/session-states';
import { expect, it } from 'vitest';
import { stateCounts, urgentState } from '@/components/agents/board-agent';
import { BoardSorter } from '@/components/agents/board-columns';
import { isOnBoard, UNFILTERED_BOARD } from '@/components/agents/board-filter';
import { anAgent } from './rows';

const killed = anAgent({ id: 'killed', sessionStates: { ...noSessions(), exited: 2 }, brokenOffCount: 1 });
const ended = anAgent({ id: 'ended', sessionStates: { ...noSessions(), exited: 1 } });
const works = anAgent({ id: 'works', sessionStates: { ...noSessions(), working: 1 } });

it('counts a crashed session as failed', () => {
  expect([killed, ended, works].map(urgentState)).toEqual(['failed', 'exited', 'working']);
  expect(stateCounts(killed)).toEqual({ ...noSessions(), failed: 1, exited: 1 });
});

it('sorts and filters by that state', () => {
  const byState = new BoardSorter().sort([ended, works, killed], { sort: 'state', isReversed: false });
  expect(byState).toEqual(['killed', 'works', 'ended']);
  const failed = { ...UNFILTERED_BOARD, states: ['failed' as const] };
  expect([ended, works, killed].filter((agent) => isOnBoard(agent, failed))).toEqual([killed]);
});
