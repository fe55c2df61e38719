import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { NO_OBLIGATIONS } from '@interlude/protocol/projections/obligations';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { newSession } from '@interlude/protocol/projections/session-summary';
import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import { placeEvents } from '@interlude/protocol/projections/turns';
import { describe, expect, it } from 'vitest';
import { foldObligations, foldSession, foldTasks, turnFromEvents } from '@/tests/support/memory-log';
import { custom, runEnds, runStarts, says, taskEnds, taskStarts, userSays } from './session-story';

/** A batch of events about distinct entities, folded into all state of server and browser. */
const FEW = 500;
const MANY = 16 * FEW;
/**
 * Sixteen times the events take sixteen times as long in a linear fold, and 256 times as long in a quadratic one.
 * The limit leaves room for garbage collection, which takes longer in a heap filled by other tests.
 */
const AT_MOST = 48;
/** Takes the fastest round: a busy machine slows some rounds, a quadratic fold slows all. */
const ROUNDS = 3;
const MOST_ROUNDS = 9;

const numbered = (count: number, make: (at: number) => AgUiEvent[]) =>
  Array.from({ length: count }, (_, index) => make(index));
const inTurn = (count: number, make: (at: number) => AgUiEvent[]) => [runStarts('r'), ...numbered(count, make)];
const opened = (at: number) => custom('request:opened', { request_id: `q${at}`, tool_name: 'Bash', input: { a: 1 } });
const resolved = (at: number) => custom('request:resolved', { request_id: `q${at}`, outcome: 'allowed' });
const ids = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}${index}`);
const messages = (count: number) => ids('u', count).map((id) => ({ id, role: 'user', content: 'hello' }));

const STORIES: [string, (count: number) => AgUiEvent[][]][] = [
  ['requests', (count) => [...inTurn(count, opened), ...numbered(count, resolved), runEnds('r')]],
  [
    'tasks',
    (count) => [
      ...inTurn(count, (at) => taskStarts(`t${at}`)),
      ...numbered(count, (at) => taskEnds(`t${at}`, 'completed')),
    ],
  ],
  [
    'runs of one task',
    (count) =>
      numbered(count, (at) => [
        ...taskStarts('t', { run_id: `${at}` }),
        ...taskEnds('t', 'completed', { run_id: `${at}` }),
      ]),
  ],
  ['messages', (count) => inTurn(count, (at) => says(`m${at}`, 'a'))],
  ['messages that begin and do not end', (count) => inTurn(count, (at) => says(`m${at}`, 'a').slice(0, 1))],
  ['messages of people', (count) => inTurn(count, (at) => userSays(`u${at}`, 'hello'))],
  [
    'messages in a run’s input',
    (count) => [[{ type: 'RUN_STARTED', runId: 'r', input: { messages: messages(count) } }]],
  ],
  [
    'messages of people that a turn names',
    (count) => [
      ...numbered(count, (at) => userSays(`u${at}`, 'hello')),
      runStarts('r', { userMessageIds: ids('u', count) }),
      runEnds('r'),
    ],
  ],
  [
    'tool calls',
    (count) =>
      inTurn(count, (at) => [
        { type: 'TOOL_CALL_START', toolCallId: `c${at}` },
        { type: 'TOOL_CALL_ARGS', toolCallId: `c${at}`, delta: '{}' },
      ]),
  ],
  [
    'pieces of the arguments of one call',
    (count) => [
      [{ type: 'TOOL_CALL_START', toolCallId: 'c' }],
      ...inTurn(count, () => [{ type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{"a":"0123456789"}' }]),
    ],
  ],
  ['turns', (count) => numbered(count, (at) => [...runStarts(`r${at}`), ...runEnds(`r${at}`)])],
  ['notices', (count) => numbered(count, () => custom('interlude:notice', { text: 'look' }))],
];

describe('folding a batch', () => {
  it.each(STORIES)(
    'takes time linear in its events: %s',
    (_, tell) => {
      foldAll(tell(FEW));
      let [few, many] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
      // The clock is too coarse for a few milliseconds.
      const growth = () => many / Math.max(few, 10);
      for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && growth() >= AT_MOST); round++) {
        few = Math.min(few, foldAll(tell(FEW)));
        many = Math.min(many, foldAll(tell(MANY)));
      }
      expect(growth()).toBeLessThan(AT_MOST);
    },
    120_000,
  );
});

/** @returns milliseconds of processor time */
function foldAll(story: AgUiEvent[][]): number {
  const owner = { sessionId: 's', agentId: 'a' };
  const entries = story
    .flat()
    .map((event, index) => ({ position: String(index + 1), occurredAt: index, receivedAt: index, event }));
  const beganAt = processorMs();
  const { placements } = placeEvents(NO_PLACES, entries);
  const tasks = foldTasks([], placements, owner).map((after) => ({ before: null, after }));
  const { changes } = foldObligations(NO_OBLIGATIONS, [], placements, owner);
  foldSession(newSession('s', 'a', 0), placements, tasks, changes, 0);
  const header = placements.find(({ turns }) => turns.length > 0)?.turns[0];
  if (header !== undefined) turnFromEvents(header, entries);
  foldTranscript(transcriptFromPage({ position: '0', hasMore: false, turns: [], places: NO_PLACES }), entries);
  return processorMs() - beganAt;
}

/** Processor time of this process, in milliseconds. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
