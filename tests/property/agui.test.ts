import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { ClientEvent, Dialect, Outcome } from '@/lib/server/agui/client-events';
import { ClientParts } from '@/lib/server/agui/client-parts';
import type { PendingRequest } from '@/lib/server/agui/interrupts';
import type { RunProjectorOptions } from '@/lib/server/agui/run-projector';
import { RunProjector } from '@/lib/server/agui/run-projector';
import { TaskActivities } from '@/lib/server/agui/task-activity';
import { WellFormedStream } from '@/lib/server/agui/well-formed-stream';
import { rejectionOf, undeclaredFieldIn } from '../support/agui-verifier';
import { arbitraryBatchesWithSnapshots } from '../support/arbitrary-events';
import { rejectionBy, strictClient } from '../support/strict-clients';

/** Start and end events checked by strict clients, with their subagents. */
const id = (prefix: string) => fc.constantFrom(`${prefix}1`, `${prefix}2`);
const speaker = fc.option(id('s'), { nil: undefined });
const bracketed: fc.Arbitrary<AgUiEvent> = fc.oneof(
  fc.record({ type: fc.constantFrom('STEP_STARTED', 'STEP_FINISHED'), stepName: id('step'), subagentRunId: speaker }),
  fc.record({
    type: fc.constantFrom('SUBAGENT_STARTED', 'SUBAGENT_FINISHED', 'SUBAGENT_ERROR'),
    subagentRunId: id('s'),
    name: fc.constantFrom('helper', undefined, 7),
    parentSubagentRunId: speaker,
  }),
  fc.record({ type: fc.constantFrom('REASONING_START', 'REASONING_END'), messageId: id('m'), subagentRunId: speaker }),
  fc.record({
    type: fc.constantFrom('TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'REASONING_MESSAGE_START'),
    messageId: id('m'),
    role: fc.constantFrom('assistant', 'user', 'unknown'),
    metadata: fc.constantFrom(undefined, { interlude: { turn: 'none', from: 7, replyTo: ['u1', 7] } as never }),
    delta: fc.constantFrom('', 'x', 7),
    subagentRunId: speaker,
  }),
  fc.record({
    type: fc.constantFrom('TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'TOOL_CALL_RESULT'),
    toolCallId: id('t'),
    toolCallName: fc.constantFrom('Bash', undefined),
    parentMessageId: fc.option(id('m'), { nil: null }),
    delta: fc.constantFrom('{}', undefined),
    content: fc.constantFrom('ok', { a: 1 }, null),
    messageId: fc.option(id('m'), { nil: undefined }),
    subagentRunId: speaker,
  }),
  fc.record({
    type: fc.constantFrom('ACTIVITY_SNAPSHOT', 'ACTIVITY_DELTA', 'STATE_SNAPSHOT', 'STATE_DELTA', 'RAW', 'CUSTOM'),
    messageId: fc.option(id('a'), { nil: undefined }),
    activityType: fc.constant('plan'),
    content: fc.constantFrom({ entries: [] }, [], null),
    patch: fc.constantFrom([], [{ op: 'add', path: '/x', value: 1 }], [{ op: 'fly', path: '/x' }], 7),
    delta: fc.constantFrom([], [{ op: 'remove', path: '/x' }], 'no'),
    name: fc.constantFrom('own', undefined, 'task:output'),
    metadata: fc.constantFrom(...[undefined, { a: 1 }, 7 as never, { interlude: { whole: true as const } }], {
      interlude: { turn: 'none', replyTo: [7], clientId: {} } as never,
    }),
  }) as fc.Arbitrary<AgUiEvent>,
  fc.constantFrom<AgUiEvent>(
    { type: 'request:opened' },
    { type: 'CUSTOM', name: 'request:opened', value: { request_id: 'q1', kind: 'question', digest: 'd' } },
    { type: 'CUSTOM', name: 'runner:away', value: {} },
    { type: 'CUSTOM', name: 'message:delivery', value: { message_id: 'u1', delivery: 'failed', reason: 'full' } },
    { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [] } },
  ),
);

/** Any session's log in position order. */
const logs: fc.Arbitrary<EventEntry[]> = fc
  .tuple(arbitraryBatchesWithSnapshots, fc.array(fc.tuple(fc.nat(100), bracketed), { maxLength: 30 }))
  .map(([batches, more]) => {
    const events = batches.flat();
    for (const [at, event] of more) events.splice(at % (events.length + 1), 0, event);
    return events.map((event, index) => ({ position: String(index + 1), occurredAt: index, receivedAt: index, event }));
  });

const DIALECTS: Dialect[] = ['1.0', '0.0.59'];
const request: PendingRequest = {
  id: 'q1',
  kind: 'permission',
  title: 'May I?',
  toolName: null,
  toolCallId: null,
  input: null,
  options: [],
  digest: 'd'.repeat(64),
  openedPosition: '0',
  expiresAt: null,
};

function partsOf(has: readonly [string, number][]): ClientParts {
  const parts = new ClientParts();
  for (const [name, length] of has) parts.add(name.startsWith('t') ? 'call' : 'text', name, length, 0);
  return parts;
}

const had = fc.array(fc.tuple(fc.constantFrom('m1', 'm2', 'u1', 't1'), fc.nat(6)), { maxLength: 3 });

beforeAll(() => {
  // clients print their verdicts there
  for (const method of ['warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined);
});
afterAll(() => vi.restoreAllMocks());

describe('a well-formed stream', () => {
  const outcomes = fc.constantFrom<Outcome>(
    { type: 'success' },
    { type: 'cancelled' },
    { type: 'interrupt', interrupts: [{ id: 'i', reason: 'tool_call' }] },
  );
  const verbs = fc.array(fc.tuple(fc.nat(100), fc.constantFrom('begin', 'finish', 'fail', 'settle'), outcomes), {
    maxLength: 12,
  });

  test.each(DIALECTS)('is accepted by %s clients for any input and any end of runs', (dialect) => {
    fc.assert(
      fc.property(logs, verbs, had, (log, turns, has) => {
        const stream = new WellFormedStream({ threadId: 's1', dialect, parts: partsOf(has) });
        for (const [index, entry] of log.entries()) {
          for (const [when, verb, outcome] of turns) {
            if (when % log.length !== index) continue;
            if (verb === 'begin') stream.begin({ runId: `run-${index}` });
            else if (verb === 'finish') stream.finish(outcome);
            else if (verb === 'fail') stream.fail('no');
            else stream.settle();
          }
          stream.write(entry);
        }
        stream.finish({ type: 'success' });
        const written = stream.drain();
        expect([rejectionOf(written, dialect), undeclaredFieldIn(written)]).toEqual([null, null]);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a run projector', () => {
  const given = fc.record({
    messageIds: fc.subarray(['u1', 'u2']),
    answeredIn: fc.option(fc.constantFrom('r1', 'r2'), { nil: null }),
    answersNext: fc.boolean(),
    follows: fc.constantFrom<RunProjectorOptions['follows']>('no', 'while-tasks-run', 'always'),
    openTurnId: fc.option(fc.constantFrom('r0', 'r1'), { nil: null }),
    pending: fc.subarray([request]),
    answered: fc.subarray(['q1']),
    asOf: fc.nat(40).map(String),
    knownUpTo: fc.nat(40).map(String),
    isTurnless: fc.boolean(),
    isAway: fc.boolean(),
    notices: fc.constantFrom([], [{ name: 'interlude:resumed', value: {} }]),
  });
  const moments = fc.record({
    caughtUp: fc.nat(100),
    settles: fc.array(fc.nat(100)),
    bound: fc.nat(200),
    givesUp: fc.nat(200),
    connects: fc.boolean(),
  });

  interface Lived {
    log: EventEntry[];
    options: Omit<RunProjectorOptions, 'stream' | 'parts' | 'tasks' | 'runId'>;
    when: { caughtUp: number; settles: number[]; bound: number; givesUp: number; connects: boolean };
    has: [string, number][];
  }

  function live(dialect: Dialect, { log, options, when, has }: Lived): ClientEvent[] {
    const parts = partsOf(has);
    const stream = new WellFormedStream({ threadId: 's1', dialect, parts });
    const tasks = new TaskActivities({ sessionId: 's1', agentId: 'a1' }, []);
    const projector = new RunProjector({ ...options, stream, parts, tasks, runId: 'asked' });
    if (when.connects) projector.projectHistory([{ id: 'm1', role: 'assistant', content: 'x' }]);
    for (let index = 0; index < log.length && !projector.isOver; index += 1) {
      if (when.settles.some((one) => one % log.length === index)) projector.settle();
      if (when.caughtUp % log.length === index) projector.caughtUp();
      if (when.bound === index) projector.stopFollowing();
      if (when.givesUp === index) projector.timeOut();
      projector.project(log[index] as EventEntry);
      if (projector.rereads === null) continue;
      projector.reread();
      index = -1;
    }
    projector.settle();
    if (!projector.isOver) projector.fail('It was stopped.', 'stream_shutdown');
    return stream.drain();
  }

  const lives = fc.record({ log: logs, options: given, when: moments, has: had });

  test.each(DIALECTS)('is accepted by %s clients and never ends mid-run', (dialect) => {
    fc.assert(
      fc.property(lives, (life) => {
        const events = live(dialect, life);
        expect([rejectionOf(events, dialect), undeclaredFieldIn(events)]).toEqual([null, null]);
        expect(events.at(-1)?.type).toMatch(/^RUN_(FINISHED|ERROR)$/);
        expect(events.filter((event) => event.delta === '')).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  test.each(DIALECTS)('is accepted by the %s client itself', async (dialect) => {
    await fc.assert(
      fc.asyncProperty(lives, async (life) => {
        expect(await rejectionBy(live(dialect, life), dialect)).toBeNull();
      }),
      { numRuns: 100 },
    );
  });

  test('gives the client the complete text from any partial text and any folding of deltas', async () => {
    const deltas = fc.array(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(deltas, fc.nat(40), fc.nat(8), fc.boolean(), async (deltas, had, folded, isAnnounced) => {
        const whole = deltas.join('');
        const has = whole.slice(0, had);
        const parts = new ClientParts();
        if (has !== '') parts.add('text', 'm1', has.length, 0);
        const stream = new WellFormedStream({ threadId: 't', dialect: '1.0', parts });
        stream.begin({ runId: 'r1' });
        const events: AgUiEvent[] = isAnnounced ? [{ type: 'TEXT_MESSAGE_START', messageId: 'm1' }] : [];
        const upTo = Math.min(folded, deltas.length);
        if (upTo > 0) {
          const delta = deltas.slice(0, upTo).join('');
          const metadata = { interlude: { whole: true as const } };
          events.push({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta, metadata });
        }
        for (const delta of deltas.slice(upTo)) events.push({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta });
        for (const [index, event] of events.entries()) {
          stream.write({ position: String(index), occurredAt: index, receivedAt: index, event });
        }
        stream.finish({ type: 'success' });
        const body = stream.drain().map((event) => `data: ${JSON.stringify(event)}\n\n`);
        const headers = { 'content-type': 'text/event-stream' };
        const client = strictClient('1.0', {
          url: 'http://127.0.0.1:9/',
          threadId: 't',
          fetch: async () => new Response(body.join(''), { headers }),
        });
        if (has !== '') client.setMessages([{ id: 'm1', role: 'assistant', content: has }]);
        await client.runAgent({ runId: 'r1' });
        expect(client.messages.map(({ content }) => content)).toEqual([whole]);
      }),
      { numRuns: 100 },
    );
  });
});
