import { describe, expect, test } from 'vitest';
import { newAdapter } from './play';
import { tell } from './story';
import { calls, launches, over, ReadLines, returns, says, typed, user } from './transcript-lines';

describe('a call id reused within a turn', () => {
  const tools = (lines: ReadLines) =>
    lines.story.turns.flatMap((turn) => turn.tools.map(({ args, result }) => [(args as { n: number }).n, result]));
  const call = (n: number) => ({
    ...calls('c1', 'Read', { n }),
    message: { ...calls('c1', 'Read', { n }).message, id: `m${n}` },
  });

  test.each([
    ['three times in a row', [call(1), returns('c1', 'a'), call(2), returns('c1', 'b'), call(3), returns('c1', 'c')]],
    [
      'before the first one has its result',
      [call(1), call(2), call(3), returns('c1', 'a'), returns('c1', 'b'), returns('c1', 'c')],
    ],
    [
      'in parallel in one message',
      [
        {
          type: 'assistant',
          message: {
            id: 'm1',
            content: [1, 2, 3].map((n) => ({ type: 'tool_use', id: 'c1', name: 'Read', input: { n } })),
          },
        },
        ...['a', 'b', 'c'].map((text) => returns('c1', text)),
      ],
    ],
  ])('keeps each call with its own result: %s', (_, read) => {
    const lines = new ReadLines().read(typed('Go'), ...read, says('Ok'), over);
    expect(tools(lines)).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
  });

  test('keeps both calls across other parts and turns', () => {
    const between = Array.from({ length: 20 }, (_, index) => says(`Step ${index}`));
    const lines = new ReadLines().read(
      typed('Go'),
      call(1),
      returns('c1', 'a'),
      ...between,
      call(2),
      returns('c1', 'b'),
    );
    lines.read(over, typed('Go on'), call(3), returns('c1', 'c'), says('Ok'), over);
    expect(tools(lines)).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
  });

  test('keeps both calls if the first turn ended without a result', () => {
    const lines = new ReadLines().read(
      typed('Go'),
      call(1),
      says('Ok'),
      over,
      typed('On'),
      call(1),
      returns('c1', 'b'),
    );
    expect(tools(lines)).toEqual([
      [1, null],
      [1, 'b'],
    ]);
  });

  test('waits for its own answer despite the earlier result', () => {
    const lines = new ReadLines().read(
      typed('Go'),
      call(1),
      returns('c1', 'a'),
      says('Ok'),
      over,
      typed('On'),
      call(2),
    );
    lines.events.push(...lines.adapter.requestOpened('Read', { n: 2 }, {}, 8_000));
    const shown = lines.events.findLast(({ event }) => event.type === 'TOOL_CALL_START')?.event.toolCallId;
    const opened = lines.events.find(({ event }) => event.name === 'request:opened')?.event.value;
    expect(opened).toMatchObject({ request_id: 'c1', tool_use_id: shown });
    expect(lines.story.requests).toEqual([{ id: 'c1', outcomes: [] }]);
    lines.read(returns('c1', 'b'));
    expect(lines.story.requests).toEqual([{ id: 'c1', outcomes: ['allowed'] }]);
  });

  test('is one call for a repeated line', () => {
    const lines = new ReadLines().read(
      typed('Go'),
      { ...call(1), uuid: 'x' },
      { ...call(1), uuid: 'x' },
      returns('c1', 'a'),
      says('Ok'),
      over,
    );
    expect(tools(lines)).toEqual([[1, 'a']]);
  });
});

describe('a call id streamed again within a turn', () => {
  test('begins another call in the next turn without a result for the first', () => {
    const adapter = newAdapter();
    const content = { type: 'tool_use', id: 'c1', name: 'Read', input: {} };
    const events = [
      { type: 'system', subtype: 'init', user_message_uuids: ['u1'] },
      { type: 'stream_event', event: { type: 'message_start', message: { id: 'm1' } } },
      { type: 'stream_event', event: { type: 'content_block_start', index: 0, content_block: content } },
      { type: 'result', subtype: 'success', num_turns: 1, user_message_uuids: ['u1'] },
      { type: 'system', subtype: 'init', user_message_uuids: ['u2'] },
      { type: 'stream_event', event: { type: 'message_start', message: { id: 'm2' } } },
      { type: 'stream_event', event: { type: 'content_block_start', index: 0, content_block: content } },
    ].flatMap((message) => adapter.read(message, 1));
    const begun = events.flatMap(({ event: { type, toolCallId } }) => (type === 'TOOL_CALL_START' ? [toolCallId] : []));
    expect(new Set(begun).size).toBe(2);
  });

  test.each([
    ['with whole messages', true],
    ['without', false],
  ])('keeps each call with its own result, %s', (_, hasWhole) => {
    const adapter = newAdapter();
    const events = [{ type: 'system', subtype: 'init', user_message_uuids: ['u1'] }].flatMap((one) =>
      adapter.read(one, 1),
    );
    const read = (message: object) => events.push(...adapter.read(message, 1));
    for (const n of [1, 2, 3]) {
      const content = { type: 'tool_use', id: 'c1', name: 'Read', input: {} };
      read({ type: 'stream_event', event: { type: 'message_start', message: { id: `m${n}` } } });
      read({ type: 'stream_event', event: { type: 'content_block_start', index: 0, content_block: content } });
      const delta = { type: 'input_json_delta', partial_json: `{"n":${n}}` };
      read({ type: 'stream_event', event: { type: 'content_block_delta', index: 0, delta } });
      if (hasWhole) read({ type: 'assistant', message: { id: `m${n}`, content: [{ ...content, input: { n } }] } });
      read({ type: 'stream_event', event: { type: 'content_block_stop', index: 0 } });
      read({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 'c1', content: `r${n}` }] } });
    }
    read({ type: 'result', subtype: 'success', is_error: false, user_message_uuids: ['u1'] });
    const [turn] = tell(events).turns;
    expect(turn?.tools.map(({ args, result }) => [args, result])).toEqual([1, 2, 3].map((n) => [{ n }, `r${n}`]));
  });
});

describe('a lone surrogate', () => {
  test.each(['\ud83d', 'a \ud83d', '\ude00 b', 'a \ud83d b', '\ud83d\ud83d', '\ude00\ud83d'])(
    'is said once: %j',
    (text) => {
      const lines = new ReadLines().read(typed('Go'));
      const heard = { at: 1_500, isClocked: true, promptId: null, heardAt: 1_500, failure: null };
      lines.adapter.announced({ ...heard, text: text.toWellFormed() });
      lines.read(says(text));
      lines.events.push(...lines.adapter.stopped(9_000));
      expect(lines.story.turns).toMatchObject([{ texts: [text], end: 'success' }]);
    },
  );

  test('stays in a result', () => {
    const lines = new ReadLines().read(typed('Go'), calls('c1', 'Read'), returns('c1', 'a \ud83d'), says('Ok'), over);
    expect(lines.story.turns[0]?.tools).toMatchObject([{ result: 'a \ud83d' }]);
  });
});

describe('a fork', () => {
  const notices = (lines: ReadLines) =>
    lines.story.customs.flatMap(({ name, value }) =>
      name === 'interlude:notice' ? [(value as { of_session_id?: string }).of_session_id] : [],
    );
  const own = { sessionId: 's1' };
  const copied = (of: string) => ({ ...own, forkedFrom: { sessionId: of, messageUuid: 'x' } });

  test.each([
    ['is noted once', [typed('Go', copied('s0')), says('Ok'), typed('On', own)], ['s0']],
    ['of a fork names the one it was made of', [typed('Go', copied('s0')), typed('On', copied('s0'))], ['s0']],
    ['is not noted for a continued session', [typed('Go', own)], []],
    ['is not of itself', [typed('Go', copied('s1'))], []],
  ])('%s', (_, read, of) => {
    expect(notices(new ReadLines().read(...read))).toEqual(of);
  });

  test('loses the running tasks of the original session', () => {
    const lines = new ReadLines().read(typed('Go', copied('s0')), ...launches('b1'), says('Runs'), over);
    lines.events.push(...lines.adapter.replaced(10_000, 10_000));
    expect(lines.tasks).toEqual(['b1 lost']);
  });
});

describe('a sidechain in an old session file', () => {
  const side = { isSidechain: true };
  test('is no agent content and opens no turn', () => {
    const lines = new ReadLines().read({ ...user('Look around'), ...side }, { ...says('Looked'), ...side });
    expect(lines.turns).toEqual([]);
    lines.read(typed('Go'), { ...calls('s1', 'Read'), ...side }, { ...returns('s1', 'x'), ...side }, says('Ok'), over);
    expect(lines.story.turns).toMatchObject([{ texts: ['Ok'], tools: [], end: 'success' }]);
    expect(lines.story.userMessages.map(({ text }) => text)).toEqual(['Go']);
  });

  test('shows its background work', () => {
    const lines = new ReadLines().read(typed('Go'), ...launches('b1', side), says('Ok'), over);
    expect(lines.tasks).toEqual(['b1 running']);
    expect(lines.story.turns[0]?.tools).toEqual([]);
  });
});
