import type { AgUiEvent, InterludeMetadata } from '@interlude/protocol/ag-ui';
import { MAX_OBLIGATION_TEXT } from '@interlude/protocol/limits';
import { NO_OBLIGATIONS, type ObligationFold } from '@interlude/protocol/projections/obligations';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { placeEvents } from '@interlude/protocol/projections/turns';
import type { Obligation } from '@interlude/protocol/read-models';
import { describe, expect, it } from 'vitest';
import { foldObligations } from '@/tests/support/memory-log';
import { custom, runEnds, runStarts, says, userSays, wokenBy } from './session-story';

const OWNER = { sessionId: 's1', agentId: 'a1' };

function obligationsAfter(...chapters: AgUiEvent[][]): Obligation[] {
  const entries = chapters
    .flat()
    .map((event, index) => ({ position: String(index + 1), occurredAt: 100 + index, receivedAt: 1, event }));
  const { placements } = placeEvents(NO_PLACES, entries);
  return foldObligations(NO_OBLIGATIONS, [], placements, OWNER).changes.map((change) => change.after);
}

function foldOf(events: AgUiEvent[]): ObligationFold {
  const entries = events.map((event, index) => ({
    position: String(index + 1),
    occurredAt: index,
    receivedAt: 1,
    event,
  }));
  return foldObligations(NO_OBLIGATIONS, [], placeEvents(NO_PLACES, entries).placements, OWNER).fold;
}

const states = (...chapters: AgUiEvent[][]) =>
  Object.fromEntries(obligationsAfter(...chapters).map(({ messageId, state }) => [messageId, state]));
const answering = (id: string, ...replyTo: string[]): AgUiEvent[] => [
  { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: 'Yes.' },
  { type: 'TEXT_MESSAGE_END', messageId: id, metadata: { interlude: { replyTo } } },
];
const fails: AgUiEvent[] = [{ type: 'RUN_ERROR', message: 'No credit' }];
const naming = (...userMessageIds: string[]) => runStarts('r1', { turn: 'user', userMessageIds });

it('keeps the newest reply targets of unfinished texts', () => {
  const named = (at: number) => Array.from({ length: 100 }, (_, index) => `u${at}-${index}`);
  const begun = Array.from({ length: 5 }, (_, index): AgUiEvent => {
    const metadata = { interlude: { replyTo: named(index) } };
    return { type: 'TEXT_MESSAGE_START', messageId: `m${index}`, role: 'assistant', metadata };
  });
  const { answering: remembered } = foldOf(begun);
  expect(Object.keys(remembered)).toEqual(['m2', 'm3', 'm4']);
  expect(remembered.m4).toEqual(named(4));
  expect(remembered.m2).toEqual(named(2).slice(-56));
});

describe('an obligation', () => {
  it('opens once for a message repeated in a later turn', () => {
    const input = { messages: [{ id: 'u1', role: 'user', content: 'Are you there?' }] };
    const starts = (runId: string): AgUiEvent => ({ type: 'RUN_STARTED', threadId: 's1', runId, input });
    const ends = (runId: string): AgUiEvent => ({ type: 'RUN_FINISHED', threadId: 's1', runId });
    expect(states([starts('r1'), ends('r1')], [starts('r2')])).toEqual({ u1: 'answered' });
  });

  it('opens at the end of the message', () => {
    const [start, content, end] = userSays('u1', 'Are you there?');
    expect(obligationsAfter([start as AgUiEvent, content as AgUiEvent])).toEqual([]);
    expect(obligationsAfter([start as AgUiEvent, content as AgUiEvent, end as AgUiEvent])).toEqual([
      {
        messageId: 'u1',
        ...OWNER,
        from: { kind: 'person', id: 'user' },
        text: 'Are you there?',
        sentAt: 100,
        owedSince: 1,
        isOverdue: false,
        state: 'owed',
        candidate: null,
        settledAt: null,
        clearedBy: null,
        answeredInTurnId: null,
        reason: null,
        position: '3',
      },
    ]);
  });

  it.each([
    ['is answered by the turn that names the message, when it finishes', [naming('u1'), runEnds('r1')], 'answered'],
    ['stays open while that turn is open', [naming('u1'), says('m', 'Yes')], 'owed'],
    ['stays open when that turn fails', [naming('u1'), says('m', 'Yes'), fails], 'owed'],
    [
      'stays open when that turn is interrupted',
      [naming('u1'), [{ type: 'RUN_FINISHED', runId: 'r1', outcome: { type: 'cancelled' } }]],
      'owed',
    ],
    ['stays open when the agent exits', [naming('u1'), custom('session:ended', { reason: 'killed' })], 'owed'],
    [
      'is answered later, by the turn that names the message at its end',
      [naming('u1'), fails, runStarts('r2', { userMessageIds: [] }), runEnds('r2', { userMessageIds: ['u1'] })],
      'answered',
    ],
    [
      'is answered by a text with replyTo, in a turn of any cause that finishes',
      [runStarts('r1', { turn: 'between-run' }), answering('m', 'u1'), runEnds('r1')],
      'answered',
    ],
    [
      'is not answered by such a text of a failed turn, nor by the next turn',
      [
        runStarts('r1', { turn: 'between-run' }),
        answering('m', 'u1'),
        fails,
        runStarts('r2', { turn: 'between-run' }),
        runEnds('r2'),
      ],
      'owed',
    ],
    ['is answered by such a text outside any turn', [answering('m', 'u1')], 'answered'],
    [
      'is not answered by a text that starts in a turn of a task and ends in the next turn',
      [
        runStarts('r1', wokenBy('t1')),
        says('m', 'Yes', 'assistant', { metadata: { interlude: { replyTo: ['u1'] } } }).slice(0, 2),
        runEnds('r1'),
        runStarts('r2', { turn: 'user', userMessageIds: [] }),
        says('m', 'Yes').slice(2),
        runEnds('r2'),
      ],
      'owed',
    ],
    [
      'is not answered by a turn of another cause',
      [runStarts('r1', { turn: 'between-run' }), says('m', 'Poll done'), runEnds('r1')],
      'owed',
    ],
    ['can be waived', [custom('obligation:waived', { message_id: 'u1', reason: 'not needed' })], 'waived'],
    [
      'is waived if the message is not delivered',
      [custom('message:delivery', { message_id: 'u1', delivery: 'failed' })],
      'waived',
    ],
  ] as [string, AgUiEvent[][], string][])('%s', (_, chapters, state) => {
    expect(states(userSays('u1', 'Are you there?'), ...chapters)).toEqual({ u1: state });
  });

  describe('to a message that arrived during a wake-up', () => {
    const woken = wokenBy('t1');
    const byTimer: InterludeMetadata = { turn: 'between-run', trigger: { kind: 'timer', taskIds: [] } };
    const queued = says('u1', 'And?', 'user', { metadata: { interlude: { delivery: 'queued' } } });
    const arrives = custom('message:delivery', { message_id: 'u1', delivery: 'delivered' });
    const given = (...chapters: AgUiEvent[][]) => obligationsAfter(...chapters)[0]?.answeredInTurnId;
    const own = [...runStarts('r2', { turn: 'user', userMessageIds: ['u1'] }), ...runEnds('r2')];

    it.each([
      ['before the turn that a task woke', [userSays('u1', 'And?'), runStarts('r1', woken), answering('m', 'u1')]],
      ['while it is open', [runStarts('r1', woken), userSays('u1', 'And?'), answering('m', 'u1')]],
      ['while one of another cause is open', [runStarts('r1', byTimer), userSays('u1', 'And?'), answering('m', 'u1')]],
      ['and had not arrived', [queued, runStarts('r1', byTimer), answering('m', 'u1')]],
      ['and arrived in mid-turn', [queued, runStarts('r1', byTimer), arrives, answering('m', 'u1')]],
    ] as [string, AgUiEvent[][]][])('is answered by its own turn, not by a text of the wake-up: %s', (_, chapters) => {
      expect(given(...chapters, runEnds('r1'))).toBeNull();
      expect(given(...chapters, runEnds('r1'), own)).toBe('r2');
    });

    it('is given by that turn if its end names the message', () => {
      const taken = [runStarts('r1', woken), userSays('u1', 'And?'), answering('m', 'u1')];
      expect(given(...taken, runEnds('r1', { userMessageIds: ['u1'] }))).toBe('r1');
    });

    it.each([
      ['was told to have arrived', arrives],
      ['was told by the agent itself', userSays('u1', 'And?')],
    ])('is given by a text of a turn that started after the message: it %s', (_, arrival) => {
      expect(given(queued, arrival, runStarts('r1', byTimer), answering('m', 'u1'), runEnds('r1'))).toBe('r1');
    });
  });

  describe('beyond the limit of queued messages', () => {
    const queued = (id: string) => says(id, 'And?', 'user', { metadata: { interlude: { delivery: 'queued' } } });
    const many = Array.from({ length: 400 }, (_, index) => queued(`q${index}`));
    const arrives = (id: string) => custom('message:delivery', { message_id: id, delivery: 'delivered' });
    const turn = (runId: string, ...replyTo: string[]) => [
      ...runStarts(runId, { turn: 'user', userMessageIds: [] }),
      ...answering(`m-${runId}`, ...replyTo),
      ...runEnds(runId),
    ];
    const answered = (...chapters: AgUiEvent[][]) =>
      obligationsAfter(...many, ...chapters).flatMap(({ messageId, state }) =>
        state === 'answered' ? [messageId] : [],
      );

    it('is not given before the message arrived', () => {
      expect(answered(turn('r1', 'q0', 'q100', 'q143', 'q144', 'q399'))).toEqual([]);
    });

    it('is given after the message arrived', () => {
      const more = Array.from({ length: 300 }, (_, index) => queued(`p${index}`)).flat();
      expect(answered(arrives('q0'), userSays('q1', 'And?'), more, turn('r1', 'q0', 'q1', 'q2'))).toEqual(['q0', 'q1']);
    });

    it('is not given to the newest message before its arrival', () => {
      const arrived = many.flatMap((_, index) => arrives(`q${index}`));
      expect(answered(arrived, queued('p1'), queued('p2'), turn('r1', 'q399', 'p1', 'p2'))).toEqual(['q399']);
    });

    it('is given in the turn after the arrival', () => {
      const [starts, ...rest] = turn('r1', 'q0') as [AgUiEvent, ...AgUiEvent[]];
      expect(answered([starts], arrives('q0'), rest)).toEqual([]);
      expect(answered([starts], arrives('q0'), rest, turn('r2', 'q0'))).toEqual(['q0']);
    });

    it('is given at once to a message reported by the agent', () => {
      expect(answered(userSays('u1', 'And?'), turn('r1', 'u1'))).toEqual(['u1']);
    });
  });

  describe('by a text outside any turn', () => {
    const queued = says('u1', 'And?', 'user', { metadata: { interlude: { delivery: 'queued' } } });
    const arrives = custom('message:delivery', { message_id: 'u1', delivery: 'delivered' });
    const [begins, goesOn, ends] = answering('m', 'u1').map((event) => [event]) as [
      AgUiEvent[],
      AgUiEvent[],
      AgUiEvent[],
    ];
    const later = [...runStarts('r9', { turn: 'user', userMessageIds: [] }), ...runEnds('r9')];

    it.each([
      ['the message had not arrived', [queued, answering('m', 'u1')]],
      ['the message arrived while it was written', [queued, begins, goesOn, arrives, ends]],
      ['the message came while it was written', [begins, userSays('u1', 'And?'), goesOn, ends]],
      [
        'what it began in is a turn that is over',
        [userSays('u1', 'And?'), runStarts('r1', wokenBy('t1')), begins, goesOn, runEnds('r1'), ends],
      ],
      [
        'it goes on when the turn it began in has failed',
        [runStarts('r1'), begins, userSays('u1', 'And?'), fails, goesOn, ends],
      ],
      [
        'what it began in was broken off by the turn it ends in',
        [
          userSays('u1', 'And?'),
          runStarts('r1', wokenBy('t1')),
          begins,
          runStarts('r2', { turn: 'between-run' }),
          ends,
          runEnds('r2'),
        ],
      ],
    ] as [string, AgUiEvent[][]][])('is not answered where %s', (_, chapters) => {
      expect(obligationsAfter(...chapters, later)[0]).toMatchObject({ messageId: 'u1', state: 'owed' });
    });

    it.each([
      ['the message had arrived', [queued, arrives, answering('m', 'u1')]],
      ['the agent itself had told of the message', [queued, userSays('u1', 'And?'), answering('m', 'u1')]],
      ['another text had begun before it arrived', [queued, says('n', 'Hm'), arrives, answering('m', 'u1')]],
    ] as [string, AgUiEvent[][]][])('is answered where %s', (_, chapters) => {
      expect(obligationsAfter(...chapters)[0]).toMatchObject({ messageId: 'u1', state: 'answered' });
    });
  });

  it('names the answering turn', () => {
    expect(obligationsAfter(userSays('u1', 'Hi'), naming('u1'), runEnds('r1'))).toMatchObject([
      { state: 'answered', answeredInTurnId: 'r1', settledAt: 1 },
    ]);
  });

  it('opens once for a repeated message', () => {
    const once = [userSays('u1', 'Hi'), naming('u1'), runEnds('r1')];
    expect(states(...once, userSays('u1', 'Hi'))).toEqual({ u1: 'answered' });
  });

  it('opens for another agent too', () => {
    const from = { kind: 'agent' as const, id: 'reviewer' };
    expect(obligationsAfter(says('u1', 'Status?', 'user', { metadata: { interlude: { from } } }))).toMatchObject([
      { from },
    ]);
    expect(obligationsAfter(says('u2', 'Status?', 'user', { name: 'Ada' }))).toMatchObject([
      { from: { kind: 'person', id: 'Ada' } },
    ]);
  });

  it('opens for the input of a run', () => {
    const run = { type: 'RUN_STARTED', runId: 'r1', input: { messages: [{ id: 'u1', role: 'user', content: 'Hi' }] } };
    expect(states([run])).toEqual({ u1: 'owed' });
    expect(states([run], runEnds('r1'))).toEqual({ u1: 'answered' });
  });

  it('does not open for subagent prompts or assistant texts', () => {
    expect(obligationsAfter(says('p', 'Look around', 'user', { subagentRunId: 't1' }), says('m', 'Hello'))).toEqual([]);
  });

  it('truncates the quoted message between characters', () => {
    const [long] = obligationsAfter(userSays('u1', `${'x'.repeat(MAX_OBLIGATION_TEXT - 1)}🌍🌍`));
    expect(long?.text).toBe('x'.repeat(MAX_OBLIGATION_TEXT - 1));
  });

  it('keeps bounded state for texts that never end', () => {
    const begun = Array.from({ length: 1000 }, (_, n): AgUiEvent[] => [
      { type: 'TEXT_MESSAGE_START', messageId: `u${n}`, role: 'user' },
      {
        type: 'TEXT_MESSAGE_START',
        messageId: `m${n}`,
        role: 'assistant',
        metadata: { interlude: { replyTo: ['u'] } },
      },
    ]).flat();
    const entries = begun.map((event, n) => ({ position: String(n + 1), occurredAt: 1, receivedAt: 1, event }));
    const { fold } = foldObligations(NO_OBLIGATIONS, [], placeEvents(NO_PLACES, entries).placements, OWNER);
    expect(JSON.stringify(fold).length).toBeLessThan(64 * 1024);
  });
});

describe('a reply candidate', () => {
  const candidates = (...chapters: AgUiEvent[][]) =>
    Object.fromEntries(
      obligationsAfter(...chapters).map(({ messageId, candidate }) => [messageId, candidate?.messageId ?? null]),
    );
  const asked = userSays('u1', 'Are you there?');

  it.each<[string, AgUiEvent[][], string | null]>([
    [
      'is the last one of a turn that was woken',
      [asked, runStarts('r1', wokenBy('t1')), says('m1', 'Hm.'), says('m2', 'Yes.'), runEnds('r1')],
      'm2',
    ],
    [
      'is the newest of several turns',
      [
        asked,
        runStarts('r1', wokenBy('t1')),
        says('m1', 'Yes.'),
        runEnds('r1'),
        runStarts('r2', wokenBy('t2')),
        says('m2', 'Still here.'),
        runEnds('r2'),
      ],
      'm2',
    ],
    ['stands outside any turn', [asked, says('m1', 'Yes.')], 'm1'],
    ['is none while its turn is open', [asked, runStarts('r1', wokenBy('t1')), says('m1', 'Yes.')], null],
    ['is none of a turn that breaks off', [asked, runStarts('r1', wokenBy('t1')), says('m1', 'Yes.'), fails], null],
    [
      'is none that was begun before the message',
      [runStarts('r1', wokenBy('t1')), says('m1', 'Working.'), asked, runEnds('r1')],
      null,
    ],
    [
      'is none that says it answers somebody else',
      [asked, userSays('u2', 'And?'), runStarts('r1', wokenBy('t1')), answering('m1', 'u2'), runEnds('r1')],
      null,
    ],
    [
      'is none that says so where it begins, outside any turn',
      [asked, says('m1', 'Yes.', 'assistant', { metadata: { interlude: { replyTo: ['u9'] } } })],
      null,
    ],
    [
      'is none that says so in chunks',
      [
        asked,
        runStarts('r1', wokenBy('t1')),
        [{ type: 'TEXT_MESSAGE_CHUNK', messageId: 'm1', role: 'assistant', delta: 'Ye' }],
        [{ type: 'TEXT_MESSAGE_CHUNK', messageId: 'm1', delta: 's.', metadata: { interlude: { replyTo: ['u9'] } } }],
        runEnds('r1'),
      ],
      null,
    ],
    [
      'is one that says it answers the message, where that is not enough to settle it',
      [runStarts('r1', wokenBy('t1')), asked, answering('m1', 'u1'), runEnds('r1')],
      'm1',
    ],
    [
      'is none of a turn that answers another message',
      [
        asked,
        userSays('u2', 'And?'),
        runStarts('r1', { turn: 'user', userMessageIds: ['u2'] }),
        says('m1', 'Yes.'),
        runEnds('r1', { userMessageIds: ['u2'] }),
      ],
      null,
    ],
    [
      'is one that says it answers the message, though its turn answers another',
      [
        userSays('u2', 'And?'),
        runStarts('r1', { turn: 'user', userMessageIds: ['u2'] }),
        asked,
        answering('m1', 'u1'),
        runEnds('r1'),
      ],
      'm1',
    ],
    [
      'stays what it was where the next turn answers another message',
      [
        asked,
        runStarts('r1', wokenBy('t1')),
        says('m1', 'Yes.'),
        runEnds('r1'),
        userSays('u2', 'And?'),
        runStarts('r2', { turn: 'user', userMessageIds: ['u2'] }),
        says('m2', 'No.'),
        runEnds('r2'),
      ],
      'm1',
    ],
    ['is none without words', [asked, runStarts('r1', wokenBy('t1')), says('m1', ' '), runEnds('r1')], null],
  ])('%s', (_, chapters, wanted) => {
    expect(candidates(...chapters).u1).toBe(wanted);
  });

  it('settles a pending reply when accepted, and no settled one', () => {
    const accepted = custom('obligation:accepted', {
      message_id: 'u1',
      reply_message_id: 'm1',
      turn_id: 'r1',
      by: 'operator',
    });
    const turn = [runStarts('r1', wokenBy('t1')), says('m1', 'Yes.'), runEnds('r1')];
    expect(obligationsAfter(asked, ...turn, accepted)).toMatchObject([
      {
        state: 'answered',
        clearedBy: 'accepted',
        answeredInTurnId: 'r1',
        candidate: { messageId: 'm1', text: 'Yes.' },
      },
    ]);
    const waived = custom('obligation:waived', { message_id: 'u1' });
    expect(obligationsAfter(asked, ...turn, waived, accepted)).toMatchObject([
      { state: 'waived', clearedBy: 'waived' },
    ]);
  });
});
