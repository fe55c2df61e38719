import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import fc from 'fast-check';

const id = (prefix: string, count: number) => fc.integer({ min: 1, max: count }).map((n) => `${prefix}${n}`);
const words = fc.string({ minLength: 0, maxLength: 8 });

/** Any single event an agent might send. Few ids, so that events collide: in order, out of order, or never. */
const arbitraryEvent: fc.Arbitrary<AgUiEvent> = fc.oneof(
  fc.record({ type: fc.constant('TEXT_MESSAGE_START'), messageId: id('m', 4), role: fc.constant('assistant') }),
  fc.record({ type: fc.constant('TEXT_MESSAGE_CONTENT'), messageId: id('m', 4), delta: words }),
  fc.record({ type: fc.constant('TEXT_MESSAGE_END'), messageId: id('m', 4) }),
  fc.record({
    type: fc.constant('TEXT_MESSAGE_CHUNK'),
    messageId: fc.option(fc.oneof(id('m', 4), id('u', 4)), { nil: undefined }),
    role: fc.constantFrom('user', 'assistant', undefined),
    delta: words,
  }),
  fc.record({
    type: fc.constant('REASONING_MESSAGE_CHUNK'),
    messageId: fc.option(id('m', 4), { nil: undefined }),
    delta: words,
  }),
  fc.record({
    type: fc.constant('TOOL_CALL_CHUNK'),
    toolCallId: fc.option(id('t', 3), { nil: undefined }),
    toolCallName: fc.constantFrom('Bash', undefined),
    delta: fc.constantFrom('{', '"a":1', '}'),
  }),
  fc.record({ type: fc.constant('REASONING_MESSAGE_START'), messageId: id('m', 4) }),
  fc.record({ type: fc.constant('REASONING_MESSAGE_CONTENT'), messageId: id('m', 4), delta: words }),
  fc.record({ type: fc.constant('REASONING_MESSAGE_END'), messageId: id('m', 4) }),
  fc.record({ type: fc.constant('TOOL_CALL_START'), toolCallId: id('t', 3), toolCallName: fc.constant('Bash') }),
  fc.record({ type: fc.constant('TOOL_CALL_ARGS'), toolCallId: id('t', 3), delta: fc.constantFrom('{', '"a":1', '}') }),
  fc.record({ type: fc.constant('TOOL_CALL_END'), toolCallId: id('t', 3) }),
  fc.record({ type: fc.constant('TOOL_CALL_RESULT'), toolCallId: id('t', 3), content: words }),
  fc.record({ toolCallId: id('t', 3), path: words, before: words, after: words }).map(({ toolCallId, ...edit }) => ({
    type: 'TOOL_CALL_RESULT',
    toolCallId,
    content: 'Done',
    metadata: { interlude: { edits: [edit] } },
  })),
  fc
    .record({ messageId: id('p', 2), content: words, status: fc.constantFrom('pending', 'completed', 'odd') })
    .map(({ messageId, ...entry }) => ({
      type: 'ACTIVITY_SNAPSHOT',
      messageId,
      activityType: 'plan',
      content: { entries: [entry] },
    })),
  fc
    .record({ runId: id('r', 6), messages: fc.option(fc.array(id('u', 4), { maxLength: 2 }), { nil: undefined }) })
    .map(({ runId, messages }) => ({
      type: 'RUN_STARTED',
      threadId: 's1',
      runId,
      ...(messages === undefined
        ? {}
        : { metadata: { interlude: { turn: 'user' as const, userMessageIds: messages } } }),
    })),
  fc.record({ runId: id('r', 6), taskIds: fc.array(id('task', 2), { maxLength: 2 }) }).map(({ runId, taskIds }) => ({
    type: 'RUN_STARTED',
    threadId: 's1',
    runId,
    metadata: { interlude: { turn: 'between-run' as const, trigger: { kind: 'task' as const, taskIds } } },
  })),
  fc.record({ runId: id('r', 6), folded: fc.array(id('task', 2), { maxLength: 1 }) }).map(({ runId, folded }) => ({
    type: 'RUN_FINISHED',
    threadId: 's1',
    runId,
    metadata: { interlude: { foldedTaskIds: folded } },
  })),
  fc.record({
    type: fc.constant('RUN_FINISHED'),
    outcome: fc.constantFrom({ type: 'success' }, { type: 'cancelled' }),
  }),
  fc.record({ type: fc.constant('RUN_ERROR'), message: words }),
  fc
    .record({
      name: fc.constantFrom('task:started', 'task:progress', 'task:updated', 'task:completed'),
      task: id('task', 2),
    })
    .chain(({ name, task }) =>
      fc.constantFrom('running', 'completed', 'failed', 'killed').map((status) => ({
        type: 'CUSTOM',
        name,
        value: { task_id: task, description: 'poll', ...(name === 'task:started' ? {} : { status }) },
      })),
    ),
  fc
    .record({ name: fc.constantFrom('request:opened', 'request:resolved'), request_id: id('q', 2) })
    .map(({ name, request_id }) => ({ type: 'CUSTOM', name, value: { request_id, outcome: 'allowed' } })),
  fc
    .record({ message_id: id('u', 4), delivery: fc.constantFrom('delivered', 'failed') })
    .map((value) => ({ type: 'CUSTOM', name: 'message:delivery', value })),
  fc
    .record({ name: fc.constantFrom('command:queued', 'command:done', 'command:failed'), command: id('c', 3) })
    .chain(({ name, command }) =>
      fc
        .constantFrom<Record<string, unknown>>({ type: 'interrupt' }, { type: 'question.answer', request_id: 'q1' })
        .map((more) => ({ type: 'CUSTOM', name, value: { command_id: command, ...more } })),
    ),
  fc
    .record({ messageId: id('m', 4), replyTo: fc.array(id('u', 4), { maxLength: 2 }) })
    .map(({ messageId, replyTo }) => ({ type: 'TEXT_MESSAGE_END', messageId, metadata: { interlude: { replyTo } } })),
  fc
    .record({ messageId: id('m', 4), replyTo: fc.array(id('u', 4), { maxLength: 2 }) })
    .map(({ messageId, replyTo }) => ({
      type: 'TEXT_MESSAGE_START',
      messageId,
      role: 'assistant',
      metadata: { interlude: { replyTo } },
    })),
  id('u', 4).map((message_id) => ({ type: 'CUSTOM', name: 'obligation:waived', value: { message_id } })),
  fc.constantFrom<AgUiEvent>(
    { type: 'CUSTOM', name: 'session:ended', value: { reason: 'exit', exitCode: 0 } },
    { type: 'CUSTOM', name: 'interlude:lost', value: { count: 2, reason: 'outbox-full' } },
    { type: 'CUSTOM', name: 'something:else', value: 3 },
    { type: 'RAW', event: {} },
    { type: 'NEWER_THAN_US', what: [1] },
    { type: 'RUN_STARTED', threadId: 's1', parentRunId: 'r1' },
    { type: 'RUN_STARTED', threadId: 's1' },
    { type: 'RUN_STARTED', metadata: { interlude: { trigger: { taskIds: [null, {}] } } } } as unknown as AgUiEvent,
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'x', metadata: { interlude: 7 } } as unknown as AgUiEvent,
  ),
);

/** A snapshot of earlier messages: some of them, plus new ones. */
const snapshot: fc.Arbitrary<AgUiEvent> = fc
  .array(
    fc.oneof(
      fc.record({ id: id('m', 4), role: fc.constantFrom('assistant', 'reasoning', 'system'), content: words }),
      fc.record({ id: id('u', 4), role: fc.constant('user'), content: words }),
      fc.record({ id: id('x', 2), role: fc.constant('tool'), toolCallId: id('t', 3), content: words }),
      id('t', 3).map((call) => ({
        id: 'm1',
        role: 'assistant',
        toolCalls: [{ id: call, type: 'function', function: { name: 'Bash', arguments: '{"a":1}' } }],
      })),
    ),
    { maxLength: 4 },
  )
  .map((messages) => ({ type: 'MESSAGES_SNAPSHOT', messages }));

/** A person's message arrives complete: runners send it at once, possibly twice. */
const userMessage: fc.Arbitrary<AgUiEvent[]> = fc
  .record({ messageId: id('u', 4), text: words, queued: fc.boolean() })
  .map(({ messageId, text, queued }) => [
    {
      type: 'TEXT_MESSAGE_START',
      messageId,
      role: 'user',
      ...(queued ? { metadata: { interlude: { delivery: 'queued' as const } } } : {}),
    },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text },
    { type: 'TEXT_MESSAGE_END', messageId },
  ]);

const bursts = (event: fc.Arbitrary<AgUiEvent>) =>
  fc.oneof({ weight: 9, arbitrary: event.map((one) => [one]) }, { weight: 1, arbitrary: userMessage });

/** Any history of one session, split into batches. Run ids are unique. */
const batchesOf = (event: fc.Arbitrary<AgUiEvent>) =>
  fc.array(fc.array(bursts(event), { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 12 }).map((batches) => {
    let runs = 0;
    return batches.map((batch) =>
      batch.flat().map((one) => {
        if (one.type !== 'RUN_STARTED') return one;
        runs += 1;
        return { ...one, runId: `r${runs}` };
      }),
    );
  });

export const arbitraryBatches = batchesOf(arbitraryEvent);

/** The same with snapshots; only a server can tell which of their messages are new. */
export const arbitraryBatchesWithSnapshots = batchesOf(
  fc.oneof({ weight: 8, arbitrary: arbitraryEvent }, { weight: 1, arbitrary: snapshot }),
);
