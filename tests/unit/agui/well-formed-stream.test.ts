import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { describe, expect, test } from 'vitest';
import type { Dialect } from '@/lib/server/agui/client-events';
import { ClientParts } from '@/lib/server/agui/client-parts';
import { WellFormedStream } from '@/lib/server/agui/well-formed-stream';
import { undeclaredFieldIn } from '@/tests/support/agui-verifier';
import { rejectionOf } from '../../support/agui-verifier';

function written(
  events: AgUiEvent[],
  options: { dialect?: Dialect; parts?: ClientParts; run?: boolean } = {},
): string[] {
  const { dialect = '1.0', parts = new ClientParts(), run = true } = options;
  const stream = new WellFormedStream({ threadId: 't', dialect, parts });
  if (run) stream.begin({ runId: 'r1' });
  for (const [index, event] of events.entries()) {
    stream.write({ position: String(index + 1), occurredAt: index, receivedAt: index, event });
    if (!run) stream.settle();
  }
  if (run) stream.finish({ type: 'success' });
  const out = stream.drain();
  expect([rejectionOf(out, dialect), undeclaredFieldIn(out)]).toEqual([null, null]);
  const lines = out.map(({ type, messageId, toolCallId, runId, delta, content, role, name, subagentRunId, stepName }) =>
    [type, runId ?? toolCallId ?? messageId ?? name ?? stepName, role, delta ?? content, subagentRunId]
      .filter((part) => part !== undefined)
      .join(' '),
  );
  return run ? lines.slice(1, -1) : lines;
}

const says = (delta: string, more: object = {}): AgUiEvent => ({
  type: 'TEXT_MESSAGE_CONTENT',
  messageId: 'm1',
  delta,
  ...more,
});
const whole = { metadata: { interlude: { whole: true as const } } };
const has = (length: number) => {
  const parts = new ClientParts();
  parts.add('text', 'm1', length, 0);
  return parts;
};

describe('parts that never end', () => {
  test('closes the oldest of a thousand open texts', () => {
    const told = written(Array.from({ length: 1_002 }, (_, index) => says('x', { messageId: `m${index}` })));
    expect(told.filter((line) => /START|END/.test(line)).slice(999, 1_004)).toEqual([
      'TEXT_MESSAGE_START m999 assistant',
      'TEXT_MESSAGE_END m0',
      'TEXT_MESSAGE_START m1000 assistant',
      'TEXT_MESSAGE_END m1',
      'TEXT_MESSAGE_START m1001 assistant',
    ]);
  });

  test('leaves out steps and subagents beyond the limit', () => {
    const steps = Array.from({ length: 10_002 }, (_, index) => ({ type: 'STEP_STARTED', stepName: `s${index}` }));
    expect(written(steps)).toHaveLength(20_000);
  });
});

test('accepts a run named like one between runs', () => {
  const stream = new WellFormedStream({ threadId: 't', dialect: '1.0', parts: new ClientParts() });
  stream.begin({ runId: 'outside-1' });
  stream.settle();
  expect([stream.runId, stream.isOutside]).toEqual(['outside-1', false]);
});

describe('an event', () => {
  test('gets a start when it lacks one, and ends with its run', () => {
    expect(written([says('Hi')])).toEqual([
      'TEXT_MESSAGE_START m1 assistant',
      'TEXT_MESSAGE_CONTENT m1 Hi',
      'TEXT_MESSAGE_END m1',
    ]);
  });

  test('with a whole text is written from where the client’s ends', () => {
    expect(written([says('Hello '), says('Hello world', whole)])).toEqual([
      'TEXT_MESSAGE_START m1 assistant',
      'TEXT_MESSAGE_CONTENT m1 Hello ',
      'TEXT_MESSAGE_CONTENT m1 world',
      'TEXT_MESSAGE_END m1',
    ]);
  });

  test('repeated from the start is written from where the client’s ends', () => {
    const start: AgUiEvent = { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' };
    const end: AgUiEvent = { type: 'TEXT_MESSAGE_END', messageId: 'm1' };
    expect(written([start, says('Hel'), says('lo'), end], { parts: has(5) })).toEqual([]);
    expect(written([start, says('Hel'), says('lo'), end], { parts: has(4) })).toEqual([
      'TEXT_MESSAGE_START m1 assistant',
      'TEXT_MESSAGE_CONTENT m1 o',
      'TEXT_MESSAGE_END m1',
    ]);
  });

  test('without content or start is left out', () => {
    expect(
      written([
        { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
        { type: 'TOOL_CALL_END', toolCallId: 'c1' },
      ]),
    ).toEqual([]);
    expect(written([says('')])).toEqual(['TEXT_MESSAGE_START m1 assistant', 'TEXT_MESSAGE_END m1']);
  });

  test('in chunks forms one message until another begins', () => {
    const chunk = (delta: string, messageId?: string): AgUiEvent => ({ type: 'TEXT_MESSAGE_CHUNK', messageId, delta });
    expect(written([chunk('a', 'm1'), chunk('b'), chunk('c', 'm2')])).toEqual([
      'TEXT_MESSAGE_START m1 assistant',
      'TEXT_MESSAGE_CONTENT m1 a',
      'TEXT_MESSAGE_CONTENT m1 b',
      'TEXT_MESSAGE_START m2 assistant',
      'TEXT_MESSAGE_CONTENT m2 c',
      'TEXT_MESSAGE_END m1',
      'TEXT_MESSAGE_END m2',
    ]);
  });

  test('from a snapshot adds only new messages', () => {
    const ofSnapshot = (messageId: string, delta: string): AgUiEvent => ({
      type: 'TEXT_MESSAGE_CHUNK',
      messageId,
      role: 'assistant',
      delta,
      metadata: { interlude: { whole: true, ofSnapshot: { turnId: null } } },
    });
    expect(
      written([{ type: 'MESSAGES_SNAPSHOT', messages: [] }, ofSnapshot('m1', 'No'), ofSnapshot('m2', 'New')], {
        parts: has(3),
      }),
    ).toEqual(['TEXT_MESSAGE_START m2 assistant', 'TEXT_MESSAGE_CONTENT m2 New', 'TEXT_MESSAGE_END m2']);
  });

  test('with a result ends its call, once', () => {
    const result = { type: 'TOOL_CALL_RESULT', toolCallId: 'c1', content: [{ type: 'text', text: 'ok' }] };
    expect(written([{ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' }, result, result])).toEqual([
      'TOOL_CALL_START c1',
      'TOOL_CALL_END c1',
      'TOOL_CALL_RESULT c1 tool ok',
    ]);
  });

  test('of reasoning has the clients’ role', () => {
    const thought = { type: 'REASONING_MESSAGE_START', messageId: 'g', role: 'assistant' };
    expect(written([thought])).toEqual(['REASONING_MESSAGE_START g reasoning', 'REASONING_MESSAGE_END g']);
  });

  test('of one message by two subagents belongs to the first', () => {
    const start = (subagentRunId: string): AgUiEvent => ({
      type: 'TEXT_MESSAGE_START',
      messageId: 'm1',
      subagentRunId,
    });
    const end: AgUiEvent = { type: 'TEXT_MESSAGE_END', messageId: 'm1' };
    expect(written([start('s1'), says('a'), end, start('s2'), says('ab')])).toEqual([
      'TEXT_MESSAGE_START m1 assistant s1',
      'TEXT_MESSAGE_CONTENT m1 a',
      'TEXT_MESSAGE_END m1',
      'TEXT_MESSAGE_START m1 assistant s1',
      'TEXT_MESSAGE_CONTENT m1 b',
      'TEXT_MESSAGE_END m1',
    ]);
  });

  test('by a subagent with a result’s id belongs to the agent', () => {
    const result = { type: 'TOOL_CALL_RESULT', toolCallId: 'c1', messageId: 'm1', content: 'ok' };
    expect(written([result, says('a', { subagentRunId: 's1' })])).toEqual([
      'TOOL_CALL_RESULT c1 tool ok',
      'TEXT_MESSAGE_START m1 assistant',
      'TEXT_MESSAGE_CONTENT m1 a',
      'TEXT_MESSAGE_END m1',
    ]);
  });

  test('of a thought and its span has one owner', () => {
    const span = (type: string, subagentRunId?: string): AgUiEvent => ({ type, messageId: 'g', subagentRunId });
    expect(
      written([
        ...[span('REASONING_START', 's1'), span('REASONING_MESSAGE_START', 's2'), span('REASONING_END')],
        ...[span('REASONING_START', 's2'), span('REASONING_START', 's1')],
      ]),
    ).toEqual([
      'REASONING_START g s1',
      'REASONING_MESSAGE_START g reasoning s1',
      'REASONING_END g s1',
      'REASONING_START g s1',
      'REASONING_MESSAGE_END g',
      'REASONING_END g s1',
    ]);
  });

  test('keeps only declared metadata', () => {
    const interlude = { turn: 'none', whole: true, replyTo: ['u1', 7], from: 5, clientId: 'c', own: 1 };
    const stream = new WellFormedStream({ threadId: 't', dialect: '1.0', parts: new ClientParts() });
    const event = says('Hi', { metadata: { own: 1, interlude } });
    stream.write({ position: '1', occurredAt: 1, receivedAt: 1, event });
    const out = stream.drain();
    expect(undeclaredFieldIn(out)).toBeNull();
    expect(out.find(({ type }) => type === 'TEXT_MESSAGE_START')?.metadata).toEqual({
      own: 1,
      interlude: { replyTo: ['u1'], clientId: 'c' },
    });
  });

  test('of an unknown type becomes RAW', () => {
    expect(written([{ type: 'NEWER_THAN_US', what: 1 }], { dialect: '0.0.59' })).toEqual(['RAW']);
  });
});

describe('between runs', () => {
  test('gives a text its own run', () => {
    const end: AgUiEvent = { type: 'TEXT_MESSAGE_END', messageId: 'm1' };
    expect(written([says('Hi'), end, { type: 'CUSTOM', name: 'n', value: 1 }], { run: false })).toEqual([
      'RUN_STARTED outside-1',
      'TEXT_MESSAGE_START m1 assistant',
      'TEXT_MESSAGE_CONTENT m1 Hi',
      'TEXT_MESSAGE_END m1',
      'RUN_FINISHED outside-1',
      'RUN_STARTED outside-3',
      'CUSTOM n',
      'RUN_FINISHED outside-3',
    ]);
  });
});
