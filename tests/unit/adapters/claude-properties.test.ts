import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { RecordingLine } from '@interlude/runner/adapters/recordings';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newAdapter, play, RECORDINGS, recordingLines } from './play';
import { sdkMessages, text, toolUse } from './sdk-messages';
import { type Story, tell } from './story';

type BlockPlan = { kind: 'text' | 'thinking'; pieces: string[] } | { kind: 'tool'; pieces: string[]; input: object };

/** Stream pieces; repeats let blocks share a prefix or be equal. */
const pieces = fc.array(fc.constantFrom('a', 'b', 'ab', ' ', 'Hello', '\n'), { maxLength: 4 });
const blockPlan: fc.Arbitrary<BlockPlan> = fc.oneof(
  pieces.map((said) => ({ kind: 'text' as const, pieces: said })),
  pieces.map((said) => ({ kind: 'thinking' as const, pieces: said })),
  fc.record({ command: fc.string({ maxLength: 8 }) }).chain((input) => {
    const json = JSON.stringify(input);
    return fc
      .nat(json.length)
      .map((at) => ({ kind: 'tool' as const, input, pieces: [json.slice(0, at), json.slice(at)] }));
  }),
);
/** API messages of one speaker: lists of blocks. */
const speakerPlan = fc.array(fc.array(blockPlan, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 });
const speakers = fc.tuple(speakerPlan, speakerPlan, speakerPlan);
/** Chooses the next sequence at each step. */
const choices = fc.array(fc.nat(1000), { minLength: 1, maxLength: 200 });

const SPEAKERS = [
  { task: null, fields: {}, wholeFields: {} },
  {
    task: 'A',
    fields: { parent_tool_use_id: 'toolu-A' },
    wholeFields: { parent_tool_use_id: 'toolu-A', agent_id: 'A' },
  },
  {
    task: 'B',
    fields: { parent_tool_use_id: 'toolu-B' },
    wholeFields: { parent_tool_use_id: 'toolu-B', agent_id: 'B' },
  },
];

describe('partial and whole messages', () => {
  it('give the same events as whole messages alone, in any interleaving', () => {
    fc.assert(
      fc.property(speakers, choices, (plans, order) => {
        const alone = run(
          merge(
            plans.map((plan, parts) => sequences(plan, parts).wholes),
            order,
          ),
        );
        const together = run(
          merge(
            plans.flatMap((plan, parts) => {
              const { wholes, partials } = sequences(plan, parts);
              return [wholes, partials];
            }),
            order,
          ),
        );
        expect(contents(together)).toEqual(contents(alone));
        expect(contents(alone)).toEqual(planned(plans));
      }),
      { numRuns: 500 },
    );
  });

  it('give the same events in the CLI’s order', () => {
    fc.assert(
      fc.property(speakerPlan, (plan) => {
        expect(contents(run(inOrder(plan)))).toEqual(planned([plan, [], []]));
      }),
    );
  });
});

describe('a stream with losses', () => {
  it('keeps everything in whole messages, whatever stream parts are lost', () => {
    fc.assert(
      fc.property(speakerPlan, fc.infiniteStream(fc.boolean()), (plan, kept) => {
        const messages = inOrder(plan).filter((message) => isWhole(message) || isStart(message) || kept.next().value);
        expect(contents(run(messages))).toEqual(planned([plan, [], []]));
      }),
      { numRuns: 500 },
    );
  });

  it('keeps everything streamed, whatever whole messages are lost', () => {
    fc.assert(
      fc.property(speakerPlan, choices, fc.infiniteStream(fc.boolean()), (plan, order, kept) => {
        const { wholes, partials } = sequences(plan, 0);
        const some = wholes.filter(() => kept.next().value);
        const late = [...partials, ...some];
        expect(contents(run(late))).toEqual(planned([plan, [], []]));
        const between = inOrder(plan).filter((message) => !isWhole(message) || order[0] === 0 || kept.next().value);
        expect(contents(run(between))).toEqual(planned([plan, [], []]));
      }),
      { numRuns: 500 },
    );
  });
});

describe('any sequence of messages', () => {
  it.each(RECORDINGS.filter((name) => !name.includes('/') || /triple|research|permission|resume/.test(name)))(
    '%s: messages that come twice change nothing',
    (name) => {
      const lines = recordingLines(name);
      const expected = play(lines).map(({ event }) => event);
      const again = fc.tuple(fc.nat(lines.length - 1), fc.nat(200));
      fc.assert(
        fc.property(fc.array(again, { minLength: 1, maxLength: 30 }), (copies) => {
          const doubled = lines.flatMap((line, index) => [
            line,
            ...copies.flatMap(([from, delay]) =>
              Math.min(from + delay, lines.length - 1) === index ? repeatable(lines[from]) : [],
            ),
          ]);
          expect(play(doubled).map(({ event }) => event)).toEqual(expected);
        }),
        { numRuns: 20 },
      );
    },
  );

  it('never throws and closes every run exactly once', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.jsonValue(), strangeMessage), { maxLength: 60 }), (messages) => {
        const adapter = newAdapter();
        const outputs: TimedEvent[] = [];
        for (const message of messages) {
          outputs.push(...adapter.read(message, 1), ...adapter.sent(message, 1), ...adapter.requestOpened(message, 1));
          outputs.push(...adapter.requestAnswered(null, message, 1));
        }
        outputs.push(...adapter.ended(2));
        expect(tell(outputs).turns.map((turn) => turn.end)).not.toContain('open');
      }),
      { numRuns: 500 },
    );
  });

  it('is well formed when messages of recordings are lost', () => {
    const recordings = RECORDINGS.map(recordingLines);
    fc.assert(
      fc.property(fc.constantFrom(...recordings), fc.infiniteStream(fc.nat(9)), (lines, dice) => {
        const kept = lines.filter(() => dice.next().value !== 0);
        const end: RecordingLine = { t: 0, src: 'sdk.end', msg: null };
        expect(tell(play([...kept, end])).turns.map((turn) => turn.end)).not.toContain('open');
      }),
      { numRuns: 100 },
    );
  });
});

/** The CLI's order: each whole message just before its block stops. */
function inOrder(plan: readonly (readonly BlockPlan[])[]): object[] {
  const { wholes, partials } = sequences(plan, 0);
  let next = 0;
  return partials.flatMap((partial) =>
    eventType(partial) === 'content_block_stop' ? [wholes[next++] as object, partial] : [partial],
  );
}

const eventType = (message: object) => (message as { event?: { type: string } }).event?.type;
const isWhole = (message: object) => eventType(message) === undefined;
const isStart = (message: object) => eventType(message) === 'message_start';

/** Streamed and whole messages of one speaker, each in the CLI's order. */
function sequences(plan: readonly (readonly BlockPlan[])[], parts: number): { wholes: object[]; partials: object[] } {
  const { stream, assistant } = messages[parts] as ReturnType<typeof sdkMessages>;
  const { fields, wholeFields } = SPEAKERS[parts] as (typeof SPEAKERS)[number];
  const wholes: object[] = [];
  const partials: object[] = [];
  for (const [at, blocks] of plan.entries()) {
    const apiId = `msg-${parts}-${at}`;
    partials.push(stream({ type: 'message_start', message: { id: apiId } }, fields));
    for (const [index, block] of blocks.entries()) {
      const whole = wholeBlock(block, `tool-${parts}-${at}-${index}`);
      wholes.push(assistant(apiId, [whole], wholeFields));
      const empty = block.kind === 'tool' ? { ...whole, input: {} } : { type: block.kind, [block.kind]: '' };
      partials.push(stream({ type: 'content_block_start', index, content_block: empty }, fields));
      const [type, field] = DELTAS[block.kind];
      for (const piece of block.pieces)
        partials.push(stream({ type: 'content_block_delta', index, delta: { type, [field]: piece } }, fields));
      partials.push(stream({ type: 'content_block_stop', index }, fields));
    }
    partials.push(stream({ type: 'message_stop' }, fields));
  }
  return { wholes, partials };
}

const DELTAS = {
  text: ['text_delta', 'text'],
  thinking: ['thinking_delta', 'thinking'],
  tool: ['input_json_delta', 'partial_json'],
} as const;

/** Unique uuids per speaker. */
const messages = SPEAKERS.map((_, parts) => {
  const made = sdkMessages();
  const own = <T extends { uuid: string }>(message: T): T => ({ ...message, uuid: `${parts}-${message.uuid}` });
  return {
    ...made,
    stream: (...args: Parameters<typeof made.stream>) => own(made.stream(...args)),
    assistant: (...args: Parameters<typeof made.assistant>) => own(made.assistant(...args) as never),
  };
});

function wholeBlock(block: BlockPlan, toolId: string): Record<string, unknown> {
  if (block.kind === 'tool') return toolUse(toolId, block.input);
  return block.kind === 'text' ? text(block.pieces.join('')) : { type: 'thinking', thinking: block.pieces.join('') };
}

/** Merges sequences: each keeps its order, `order` picks the next. */
function merge(all: readonly (readonly object[])[], order: readonly number[]): object[] {
  const left = all.filter((sequence) => sequence.length > 0).map((sequence) => [...sequence]);
  const merged: object[] = [];
  for (let step = 0; left.length > 0; step++) {
    const at = (order[step % order.length] as number) % left.length;
    merged.push((left[at] as object[]).shift() as object);
    if (left[at]?.length === 0) left.splice(at, 1);
  }
  return merged;
}

function run(content: readonly object[]): Story {
  const adapter = newAdapter();
  const { init, taskStarted, result } = sdkMessages();
  const agents = ['A', 'B'].map((id) => taskStarted(id, { task_type: 'local_agent' }));
  const all = [init(['u1']), ...agents, ...content, result({ user_message_uuids: ['u1'] })];
  return tell([...all.flatMap((message) => adapter.read(message, 1)), ...adapter.ended(2)]);
}

/** All texts by place, in order. */
function contents({ turns, subagents }: Story) {
  const [turn] = turns;
  return {
    turns: turns.length,
    texts: turn?.texts,
    reasoning: turn?.reasoning,
    tools: turn?.tools.map(({ args }) => args),
    subagents,
  };
}

function planned(plans: readonly (readonly (readonly BlockPlan[])[])[]): ReturnType<typeof contents> {
  const said = (parts: number, kind: BlockPlan['kind']) =>
    (plans[parts] ?? [])
      .flat()
      .filter((block) => block.kind === kind)
      .map((block) => block.pieces.join(''))
      .filter((whole) => whole !== '');
  const subagents = SPEAKERS.flatMap(({ task }, parts) =>
    task === null ? [] : [[task, said(parts, 'text')] as const],
  );
  return {
    turns: 1,
    texts: said(0, 'text'),
    reasoning: said(0, 'thinking'),
    tools: said(0, 'tool').map((json) => JSON.parse(json)),
    subagents: Object.fromEntries(subagents.filter(([, texts]) => texts.length > 0)),
  };
}

/** Lines that may repeat: those from the stream, not our own. */
function repeatable(line: RecordingLine | undefined): RecordingLine[] {
  return line?.src === 'sdk' || line?.src === 'in' ? [line] : [];
}

/** Valid names in the wrong places. */
const word = fc.constantFrom(
  'a',
  'b',
  '',
  'text',
  'tool_use',
  'tool_result',
  'requesting',
  'running',
  'failed',
  '__proto__',
);
const loose = fc.oneof(
  word,
  fc.constant(null),
  fc.nat(3),
  fc.boolean(),
  fc.array(word, { maxLength: 2 }),
  fc.jsonValue({ maxDepth: 2 }),
);
const block = fc.record(
  {
    type: fc.constantFrom('text', 'thinking', 'redacted_thinking', 'image', 'text_delta', 'thinking_delta', 'other'),
    text: loose,
    thinking: loose,
    source: loose,
  },
  { requiredKeys: [] },
);
const event = fc.record(
  {
    type: fc.constantFrom(
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_stop',
    ),
    index: fc.oneof(fc.nat(2), loose),
    message: fc.oneof(fc.record({ id: word }), loose),
    content_block: fc.oneof(block, loose),
    delta: fc.oneof(block, loose),
  },
  { requiredKeys: ['type'] },
);
const strangeMessage = fc.record(
  {
    type: fc.constantFrom('system', 'assistant', 'user', 'stream_event', 'result', 'rate_limit_event', 'toString'),
    subtype: fc.constantFrom(
      'init',
      'status',
      'task_started',
      'task_updated',
      'task_progress',
      'task_notification',
      'background_tasks_changed',
      'session_state_changed',
      'thinking_tokens',
      'api_retry',
      'success',
      'error_max_turns',
      'hasOwnProperty',
    ),
    uuid: fc.oneof(fc.uuid(), loose),
    parent_tool_use_id: loose,
    agent_id: loose,
    message: fc.oneof(fc.record({ id: word, content: fc.oneof(fc.array(block, { maxLength: 3 }), loose) }), loose),
    event: fc.oneof(event, loose),
    status: loose,
    state: loose,
    task_id: loose,
    run_id: loose,
    patch: fc.oneof(fc.record({ status: loose, is_backgrounded: loose }), loose),
    tasks: fc.oneof(fc.array(fc.record({ task_id: loose, run_id: loose })), loose),
    user_message_uuids: loose,
    origin: fc.oneof(fc.record({ kind: fc.constantFrom('task-notification', 'peer'), runId: loose }), loose),
    num_turns: loose,
    result: loose,
    result_index: loose,
    is_error: loose,
    toolUseID: loose,
    isReplay: loose,
    is_backgrounded: loose,
  },
  { requiredKeys: ['type'] },
);
