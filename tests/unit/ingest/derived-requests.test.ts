import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { fieldsOf } from '@interlude/protocol/fields';
import { MAX_DERIVED, MAX_NAMED, MAX_PENDING_REQUESTS } from '@interlude/protocol/limits';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { snapshotParts } from '@interlude/protocol/projections/snapshot-parts';
import { placeEvents } from '@interlude/protocol/projections/turns';
import type { TurnPlaces } from '@interlude/protocol/turn-places';
import { describe, expect, it } from 'vitest';
import { DerivedRequests, type RequestMemory } from '@/lib/server/ingest/derived-requests';
import { interruptsOf, resumptionsOf } from '@/lib/server/ingest/interrupts';

/** A session with one event per batch, so that nothing survives outside its stored memory. */
class Replay {
  memory: RequestMemory = {};
  readonly derived: AgUiEvent[] = [];
  last: AgUiEvent | null = null;
  #places: TurnPlaces = NO_PLACES;
  #position = 0;

  append(...events: AgUiEvent[]): this {
    for (const event of events) {
      const requests = new DerivedRequests(JSON.parse(JSON.stringify(this.memory)), this.#places);
      this.#position += 1;
      const entry = { position: String(this.#position), occurredAt: 1_000, receivedAt: 1_000, event };
      this.last = requests.marked(event);
      const more = requests.apply({ entry, parts: snapshotParts(event) }, { left: MAX_DERIVED });
      this.derived.push(...more);
      this.memory = requests.memory;
      const entries = [event, ...more].map((one) => ({ ...entry, event: one }));
      this.#places = placeEvents(this.#places, entries).places;
    }
    return this;
  }

  /** The derived requests in short: `+id`, and `-id outcome`. */
  get said(): string[] {
    return this.derived.map(({ name, value }) => {
      const { request_id: id, outcome } = fieldsOf(value);
      return name === 'request:opened' ? `+${id}` : `-${id} ${outcome}`;
    });
  }

  get opened(): unknown[] {
    return this.derived.filter(({ name }) => name === 'request:opened').map(({ value }) => value);
  }
}

const replay = (...events: AgUiEvent[]) => new Replay().append(...events);
const starts = (runId: string, more: object = {}): AgUiEvent => ({
  type: 'RUN_STARTED',
  threadId: 's',
  runId,
  ...more,
});
const finishes = (more: object = {}): AgUiEvent => ({ type: 'RUN_FINISHED', threadId: 's', ...more });
const interrupts = (...list: unknown[]): AgUiEvent => finishes({ outcome: { type: 'interrupt', interrupts: list } });
const custom = (name: string, value: object, more: object = {}): AgUiEvent => ({
  type: 'CUSTOM',
  name,
  value,
  ...more,
});
const user = (messageId: string, more: object = {}): AgUiEvent => ({
  type: 'TEXT_MESSAGE_START',
  messageId,
  role: 'user',
  ...more,
});
const assistant: AgUiEvent = { type: 'TEXT_MESSAGE_START', messageId: 'a', role: 'assistant' };
const resumes = (runId: string, ...resume: object[]) => starts(runId, { input: { messages: [], resume } });
const QUESTIONS = { questions: [{ question: 'Which colour?', options: [{ label: 'red' }, { label: 'blue' }] }] };
const calls = (toolCallId: string, toolCallName: string, args: unknown): AgUiEvent[] => [
  { type: 'TOOL_CALL_START', toolCallId, toolCallName },
  { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(args) },
  { type: 'TOOL_CALL_END', toolCallId },
];
const asks = (toolCallId = 'c') => calls(toolCallId, 'AskUserQuestion', QUESTIONS);
const gives = (toolCallId: string, more: object = {}): AgUiEvent => ({
  type: 'TOOL_CALL_RESULT',
  toolCallId,
  content: 'x',
  ...more,
});
const opens = (request_id: string, tool_use_id: string, more: object = {}) =>
  custom('request:opened', { request_id, tool_use_id, kind: 'question', input: QUESTIONS, ...more });
const resolves = (request_id: string) => custom('request:resolved', { request_id, outcome: 'answered' });

describe('an interrupt', () => {
  it('opens a request in the run that ended with it', () => {
    const { derived } = replay(starts('r'), interrupts({ id: 'i', reason: 'input_required', message: 'How many?' }));
    expect(derived).toEqual([
      {
        type: 'CUSTOM',
        name: 'request:opened',
        value: { request_id: 'i', kind: 'question', title: 'How many?' },
        metadata: { interlude: { derived: { turnId: 'r' } } },
      },
    ]);
  });

  it('about a tool call requests permission, with the arguments of the call', () => {
    const { opened } = replay(
      starts('r'),
      ...calls('c', 'Bash', { command: 'ls' }),
      interrupts({ id: 'i', reason: 'tool_call', toolCallId: 'c', expiresAt: '2030-01-01T00:00:00Z' }),
    );
    expect(opened).toEqual([
      {
        request_id: 'i',
        kind: 'permission',
        tool_use_id: 'c',
        tool_name: 'Bash',
        input: { command: 'ls' },
        expires_at: Date.parse('2030-01-01T00:00:00Z'),
      },
    ]);
  });

  it('about an AskUserQuestion call opens one request, with its questions', () => {
    const { opened } = replay(starts('r'), ...asks(), interrupts({ id: 'i', reason: 'tool_call', toolCallId: 'c' }));
    expect(opened).toMatchObject([
      { request_id: 'i', kind: 'question', tool_use_id: 'c', title: 'Which colour?', input: QUESTIONS },
    ]);
  });

  it('is parsed in every format that agents send', () => {
    const ids = (event: AgUiEvent) => interruptsOf(event).map(({ id }) => id);
    const one = { id: 'i', reason: 'x' };
    expect(ids(interrupts(one))).toEqual(['i']);
    expect(ids(finishes({ outcome: { interrupts: [one] } }))).toEqual(['i']);
    expect(ids(finishes({ outcome: { type: 'interrupt', interrupt: { interrupts: [one] } } }))).toEqual(['i']);
    expect(ids(finishes({ outcome: { type: 'interrupt', interrupt: one } }))).toEqual(['i']);
    expect(ids(finishes({ outcome: 'interrupt', interrupt: one }))).toEqual(['i']);
    for (const outcome of [undefined, null, 7, [], 'interrupt', { type: 'interrupt' }, { interrupts: 3 }])
      expect(ids(finishes({ outcome }))).toEqual([]);
    for (const type of ['success', 'cancelled'])
      expect(ids(finishes({ outcome: { type, interrupts: [one] } }))).toEqual([]);
  });

  it('is resolved by the resume that names it: allowed, denied, answered or cancelled', () => {
    const asked = () =>
      replay(
        starts('r'),
        interrupts({ id: 'p', toolCallId: 'c' }, { id: 'q' }, { id: 'd', toolCallId: 'e' }, { id: 'x' }),
      );
    const { derived } = asked();
    expect(derived).toHaveLength(4);
    const session = asked().append(
      resumes(
        'r2',
        { interruptId: 'p', status: 'resolved', payload: { approved: true } },
        { interruptId: 'q', status: 'resolved', payload: 4 },
        { interruptId: 'd', status: 'resolved', payload: { approved: false } },
        { interruptId: 'x', status: 'cancelled' },
        { interruptId: 'other', status: 'resolved' },
      ),
    );
    expect(session.said.slice(4)).toEqual(['-p allowed', '-q answered', '-d denied', '-x cancelled']);
    expect(session.memory.open).toBeUndefined();
  });

  it('that no resume names stays open until the next message or the end of the continued run', () => {
    const session = replay(
      starts('r', { input: { messages: [{ id: 'm1', role: 'user', content: 'Go' }] } }),
      interrupts({ id: 'i' }, { id: 'j' }),
      // the continued run repeats the conversation
      starts('r2', {
        input: {
          messages: [{ id: 'm1', role: 'user', content: 'Go' }],
          resume: [{ interruptId: 'i', status: 'resolved' }],
        },
      }),
      assistant,
    );
    expect(session.said).toEqual(['+i', '+j', '-i answered']);
    const before = structuredClone(session.memory);
    expect(session.append(user('m2')).said.slice(3)).toEqual(['-j answered']);
    session.memory = before;
    expect(session.append(finishes()).said.slice(4)).toEqual(['-j unknown']);
  });

  it.each([
    ['repeated as an event', [user('m2')]],
    ['repeated in a chunk', [{ ...user('m2'), type: 'TEXT_MESSAGE_CHUNK', delta: 'Hi' }]],
    [
      'repeated in the input of a run',
      [starts('r2', { input: { messages: [{ id: 'm2', role: 'user', content: 'Hi' }] } })],
    ],
    ['named by a run', [starts('r2', { metadata: { interlude: { turn: 'user', userMessageIds: ['m2'] } } })]],
    [
      'that was queued, once it is delivered',
      [
        user('m2', { metadata: { interlude: { delivery: 'queued' } } }),
        custom('message:delivery', { message_id: 'm2', delivery: 'delivered' }),
      ],
    ],
  ] as [string, AgUiEvent[]][])('is answered by the next message %s', (_, events) => {
    const session = replay(starts('r'), user('m1'), interrupts({ id: 'i' }, { id: 'p', toolCallId: 'c' }));
    expect(session.append(...events.slice(0, -1)).said).toEqual(['+i', '+p']);
    expect(session.append(...events.slice(-1)).said).toEqual(['+i', '+p', '-i answered', '-p answered']);
  });

  it('stays open after a repeated message and a turn that the agent started itself', () => {
    const session = replay(
      user('m1'),
      starts('r'),
      interrupts({ id: 'i' }),
      user('m1'),
      starts('r2', { metadata: { interlude: { turn: 'between-run' } } }),
      assistant,
      finishes(),
      starts('r3', { parentRunId: 'r2' }),
      assistant,
      finishes(),
    );
    expect(session.said).toEqual(['+i']);
  });

  it('is resolved when the agent continues in a turn without a known trigger', () => {
    const session = replay(starts('r'), interrupts({ id: 'i' }), starts('r2'));
    expect(session.said).toEqual(['+i']);
    expect(session.append(assistant).said).toEqual(['+i', '-i unknown']);
    const answered = replay(starts('r'), interrupts({ id: 'i' }), starts('r2'), user('m2'), assistant, finishes());
    expect(answered.said).toEqual(['+i', '-i answered']);
    const again = replay(
      starts('r'),
      interrupts({ id: 'i' }),
      starts('r2'),
      interrupts({ id: 'i', message: 'Again?' }),
    );
    expect(again.said).toEqual(['+i', '+i']);
    expect(again.memory.open).toHaveLength(1);
  });

  it.each([
    [
      'names none but what is known',
      { input: { messages: [{ id: 'm1', role: 'user', content: 'Go' }], forwardedProps: { command: { resume: 5 } } } },
    ],
    ['has an input without messages', { input: {} }],
    ['resumes an unknown request', { input: { messages: [], resume: [{ interruptId: 'other', status: 'resolved' }] } }],
    ['names no message', { metadata: { interlude: { turn: 'user', userMessageIds: [] } } }],
    ['names a known message', { metadata: { interlude: { turn: 'user', userMessageIds: ['m1'] } } }],
  ])('is resolved when the agent continues in a person’s turn that %s', (_, begins) => {
    const asking = () => replay(user('m1'), starts('r'), ...asks(), interrupts({ id: 'i' }), starts('r2', begins));
    expect(asking().said).toEqual(['+i', '+c']);
    expect(asking().append(assistant).said.slice(2)).toEqual(['-i unknown', '-c unknown']);
    expect(asking().append(finishes()).said.slice(2)).toEqual(['-i unknown', '-c unknown']);
    const again = asking().append(interrupts({ id: 'i' }, { id: 'k', toolCallId: 'c', message: 'Which?' }));
    expect(again.said.slice(2)).toEqual(['+i', '-c cancelled', '+k']);
    expect(again.opened.at(-1)).toMatchObject({ kind: 'question', title: 'Which?' });
  });

  it('stays open through turns that the agent started itself, however they end', () => {
    const own = { metadata: { interlude: { turn: 'between-run', userMessageIds: [] } } };
    const session = replay(starts('r'), interrupts({ id: 'i' }), starts('r2', own), assistant, finishes());
    expect(session.said).toEqual(['+i']);
    expect(session.memory.isUserTurn).toBeUndefined();
  });

  it.each([
    ['a run that fails', [starts('r2'), { type: 'RUN_ERROR', message: 'x' }]],
    ['a run that is stopped', [starts('r2'), finishes({ outcome: { type: 'cancelled' } })]],
    ['a run that another interrupts', [starts('r2'), starts('r3')]],
    ['the end of the session', [custom('session:ended', {})]],
  ] as [string, AgUiEvent[]][])('is cancelled by %s', (_, events) => {
    const session = replay(starts('r'), interrupts({ id: 'i' })).append(...events);
    expect(session.said).toEqual(['+i', '-i cancelled']);
    expect(session.memory.open).toBeUndefined();
  });

  it('is not derived when the agent reports the request itself, before or after', () => {
    const before = replay(starts('r'), opens('q', 'c'), interrupts({ id: 'i', toolCallId: 'c' }));
    expect(before.said).toEqual([]);
    const after = replay(starts('r'), interrupts({ id: 'i', toolCallId: 'c' }), opens('q', 'c'));
    expect(after.last?.metadata?.interlude).toEqual({ replaces: 'i' });
    expect(after.append(user('m')).said).toEqual(['+i']);
    const asked = replay(
      starts('r'),
      interrupts({ id: 'i', toolCallId: 'c' }, { id: 'j', toolCallId: 'c' }),
      opens('q', 'c'),
    );
    expect(asked.said).toEqual(['+i', '+j', '-j cancelled']);
    // A part that already has a place stays there.
    const again = replay(starts('r'), opens('q', 'b'), interrupts({ id: 'i', toolCallId: 'c' }), opens('q', 'c'));
    expect(again.said).toEqual(['+i', '-i cancelled']);
    expect(again.last?.metadata).toBeUndefined();
  });

  it('belongs to the run it ends, not to an unknown run while another runs', () => {
    expect(replay(starts('r'), { ...interrupts({ id: 'i' }), runId: 'old' }).said).toEqual([]);
    const late = replay(interrupts({ id: 'i' }));
    expect(late.derived).toMatchObject([{ metadata: { interlude: { derived: { turnId: null } } } }]);
  });

  it('gets a generated id when its own is missing or unstorable, and opens one request per id', () => {
    const long = 'i'.repeat(300);
    const { said } = replay(
      starts('r'),
      interrupts({}, null, 5, { id: long }, { id: 'i' }, { id: 'i' }, { id: '' }, [], 'i'),
    );
    expect(said).toEqual(['+interrupt:2:0', '+interrupt:2:1', '+i', '+interrupt:2:3']);
  });

  it('is bounded in number and over time', () => {
    const many = Array.from({ length: 5_000 }, (_, index) => ({ id: `i${index}`, message: 'x' }));
    expect(interruptsOf(interrupts(...many))).toHaveLength(MAX_NAMED);
    const session = replay(starts('r'), interrupts(...many), starts('r2'), interrupts(...many.toReversed()));
    expect(session.memory.open).toHaveLength(MAX_PENDING_REQUESTS);
    expect(session.derived.length).toBeLessThan(4 * MAX_PENDING_REQUESTS);
    const named = many.map(({ id }) => ({ interruptId: id, status: 'resolved' }));
    expect(resumptionsOf(resumes('r3', ...named))).toHaveLength(MAX_NAMED);
    session.append(user('m'));
    expect(session.memory.open).toBeUndefined();
  });

  it('is derived by the next batch when this one derives too many', () => {
    const requests = new DerivedRequests();
    const entryOf = (event: AgUiEvent) => ({
      entry: { position: '1', occurredAt: 1, receivedAt: 1, event },
      parts: [],
    });
    const room = { left: 3 };
    requests.apply(entryOf(starts('r')), room);
    expect(requests.apply(entryOf(interrupts({ id: 'a' }, { id: 'b' })), room)).toHaveLength(2);
    expect(requests.apply(entryOf(user('m1')), room)).toHaveLength(1);
    expect(room.left).toBe(0);
    expect(requests.memory.open).toMatchObject([{ id: 'b' }]);
    expect(requests.apply(entryOf(user('m2')), { left: 1 })).toMatchObject([{ value: { request_id: 'b' } }]);
  });
});

describe('an AskUserQuestion call', () => {
  it('opens a request when its run finished without a result', () => {
    const session = replay(starts('r'), ...asks());
    expect(session.said).toEqual([]);
    session.append(finishes());
    expect(session.derived).toEqual([
      {
        type: 'CUSTOM',
        name: 'request:opened',
        value: {
          request_id: 'c',
          kind: 'question',
          tool_use_id: 'c',
          tool_name: 'AskUserQuestion',
          title: 'Which colour?',
          input: QUESTIONS,
        },
        metadata: { interlude: { derived: { turnId: 'r' } } },
      },
    ]);
  });

  it('opens the same request however its arguments are sent', () => {
    const whole = JSON.stringify(QUESTIONS);
    const start = { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'AskUserQuestion' };
    const args = (delta: string, more: object = {}) => ({ type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta, ...more });
    const chunk = (delta: string, more: object = {}) => ({ type: 'TOOL_CALL_CHUNK', delta, ...more });
    const wanted = replay(starts('r'), ...asks(), finishes()).opened;
    for (const events of [
      [start, ...[...whole].map((letter) => args(letter))],
      [start, args('{"half'), args(whole, { metadata: { interlude: { whole: true } } })],
      [start, args('{"half'), start, args(whole)],
      [
        chunk('', { toolCallId: 'c', toolCallName: 'AskUserQuestion' }),
        chunk(whole.slice(0, 9)),
        chunk(whole.slice(9)),
      ],
      [
        {
          type: 'MESSAGES_SNAPSHOT',
          messages: [
            {
              id: 'a',
              role: 'assistant',
              toolCalls: [{ id: 'c', type: 'function', function: { name: 'AskUserQuestion', arguments: whole } }],
            },
          ],
        },
      ],
    ] as AgUiEvent[][]) {
      expect(replay(starts('r'), ...events, finishes()).opened).toEqual(wanted);
    }
  });

  it('requests free text when its arguments are not JSON or too long to store', () => {
    const start = { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'AskUserQuestion' };
    for (const delta of ['', '{"questions":', JSON.stringify({ questions: ['x'.repeat(50_000)] })]) {
      const { opened, memory } = replay(
        starts('r'),
        start,
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta },
        finishes(),
      );
      expect(opened).toEqual([
        { request_id: 'c', kind: 'question', tool_use_id: 'c', tool_name: 'AskUserQuestion', title: 'The agent asks' },
      ]);
      expect(JSON.stringify(memory).length).toBeLessThan(1_000);
    }
  });

  it.each([
    ['has a result', [gives('c')]],
    ['ends with its result', [{ type: 'TOOL_CALL_END', toolCallId: 'c', result: 'red' }]],
    ['was followed by a message', [user('m2')]],
    ['was reported as a request by its agent', [opens('q', 'c')]],
    ['was reported as a request by its agent under another id', [opens('c', 'c')]],
    ['was reported as a request and answered', [opens('q', 'c'), resolves('q')]],
  ] as [string, AgUiEvent[]][])('opens no request if it %s', (_, events) => {
    expect(replay(starts('r'), ...asks(), ...events, finishes()).said).toEqual([]);
  });

  it('opens no request when its agent reported the request before the call', () => {
    expect(replay(starts('r'), opens('q', 'c'), resolves('q'), ...asks(), finishes()).said).toEqual([]);
  });

  it('opens no request when the run failed or was stopped, or a subagent made the call', () => {
    expect(replay(starts('r'), ...asks(), { type: 'RUN_ERROR', message: 'x' }, starts('r2'), finishes()).said).toEqual(
      [],
    );
    const cancelled = finishes({ outcome: { type: 'cancelled' } });
    expect(replay(starts('r'), ...asks(), cancelled, starts('r2'), finishes()).said).toEqual([]);
    const ofSubagent = asks().map((event) => ({ ...event, subagentRunId: 't' }));
    expect(replay(starts('r'), ...ofSubagent, finishes()).said).toEqual([]);
  });

  it('yields to the request that its agent reports later', () => {
    const session = replay(starts('r'), ...asks(), finishes(), opens('q', 'c'));
    expect(session.last?.metadata?.interlude).toEqual({ replaces: 'c' });
    expect(session.append(user('m2'), gives('c')).said).toEqual(['+c']);
  });

  it.each([
    ['its result', [gives('c')]],
    ['its result, as an error', [gives('c', { isError: true })]],
    [
      'its result in the input of a run',
      [
        starts('r2', {
          input: {
            messages: [
              { id: 'a', role: 'assistant' },
              { id: 't', role: 'tool', toolCallId: 'c', content: 'red' },
            ],
          },
        }),
      ],
    ],
    [
      'its result in a snapshot',
      [{ type: 'MESSAGES_SNAPSHOT', messages: [{ id: 't', role: 'tool', toolCallId: 'c', content: 'red' }] }],
    ],
    ['the next message', [user('m2')]],
  ] as [string, AgUiEvent[]][])('is answered by %s', (_, events) => {
    const session = replay(starts('r'), user('m1'), ...asks(), finishes()).append(...events);
    expect(session.said).toEqual(['+c', '-c answered']);
  });

  it('yields to an interrupt about the same call', () => {
    const session = replay(starts('r'), ...asks(), finishes(), starts('r2', { input: {} }));
    session.append(interrupts({ id: 'i', toolCallId: 'c', message: 'Which?' }));
    expect(session.said).toEqual(['+c', '-c cancelled', '+i']);
    expect(session.opened.at(-1)).toMatchObject({ kind: 'question', title: 'Which?' });
  });

  it('opens no second request when a snapshot repeats it', () => {
    const call = {
      id: 'c',
      type: 'function',
      function: { name: 'AskUserQuestion', arguments: JSON.stringify(QUESTIONS) },
    };
    const messages = [
      { id: 'm1', role: 'user', content: 'Paint it' },
      { id: 'a', role: 'assistant', toolCalls: [call] },
    ];
    const session = replay(starts('r'), user('m1'), ...asks(), finishes(), user('m2'), starts('r2'));
    session.append({ type: 'MESSAGES_SNAPSHOT', messages }, finishes());
    expect(session.said).toEqual(['+c', '-c answered']);
    const answered = [...messages, { id: 'm2', role: 'user', content: 'red' }];
    expect(replay(starts('r'), { type: 'MESSAGES_SNAPSHOT', messages: answered }, finishes()).said).toEqual([]);
  });

  it('is found among many others in bounded memory', () => {
    const others = Array.from({ length: 300 }, (_, index) =>
      calls(`b${index}`, 'Bash', { command: 'x'.repeat(9_000) }),
    );
    const session = replay(starts('r'), ...asks(), ...others.flat());
    expect(JSON.stringify(session.memory).length).toBeLessThan(200_000);
    expect(session.append(finishes()).opened).toMatchObject([{ request_id: 'c', input: QUESTIONS }]);
    expect(session.memory.calls).toBeUndefined();
  });
});
