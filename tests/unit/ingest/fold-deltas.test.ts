import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget();
});
afterEach(() => target.close());

const STREAMS: [string, AgUiEvent[], string][] = [
  ['a message', stream('TEXT_MESSAGE', 'messageId', 'TEXT_MESSAGE_CONTENT'), 'TEXT_MESSAGE_CONTENT'],
  ['reasoning', stream('REASONING_MESSAGE', 'messageId', 'REASONING_MESSAGE_CONTENT'), 'REASONING_MESSAGE_CONTENT'],
  ["a tool call's arguments", stream('TOOL_CALL', 'toolCallId', 'TOOL_CALL_ARGS'), 'TOOL_CALL_ARGS'],
  [
    "a subagent's message",
    stream('TEXT_MESSAGE', 'messageId', 'TEXT_MESSAGE_CONTENT', { subagentRunId: 't1' }),
    'TEXT_MESSAGE_CONTENT',
  ],
  [
    'a message whose turn ends first',
    [
      ...stream('TEXT_MESSAGE', 'messageId', 'TEXT_MESSAGE_CONTENT').slice(0, -1),
      { type: 'RUN_FINISHED', runId: 'r1' },
    ],
    'TEXT_MESSAGE_CONTENT',
  ],
];

function stream(prefix: string, idField: string, content: string, fields: Partial<AgUiEvent> = {}): AgUiEvent[] {
  const delta = (text: string): AgUiEvent => ({ type: content, [idField]: 'x', delta: text, ...fields });
  return [
    { type: 'RUN_STARTED', runId: 'r1' },
    { type: `${prefix}_START`, [idField]: 'x', ...fields },
    delta('one '),
    delta('tw\u0000o \ud83d\ude00'),
    delta(' three '),
    { type: 'CUSTOM', name: 'something:else' },
    delta('four'),
    { type: `${prefix}_END`, [idField]: 'x', ...fields },
  ];
}

describe('the deltas of', () => {
  it.each(STREAMS)(
    '%s fold into one event with the whole text at the position of the last one, however requests split them',
    async (_what, events, type) => {
      const cuts = [[8], [1, 1, 1, 1, 1, 1, 1, 1], [4, 4], [3, 5], [7, 1], [2, 3, 3], [6, 1, 1]];
      for (const [run, sizes] of cuts.entries()) {
        const sessionId = `s${run}`;
        let seq = 0;
        for (const size of sizes) {
          const batch = events.slice(seq, seq + size);
          await ingest(
            target,
            batch.map((event, index) => record(seq + index + 1, { sessionId, event })),
            1,
            sessionId,
          );
          seq += size;
        }
        const { rows } = await target.database.reader.execute({
          sql: 'SELECT * FROM events WHERE session_id = ? ORDER BY position',
          args: [sessionId],
        });
        expect(rows.map((row) => row.seq)).toEqual([1, 2, 6, 7, 8]);
        const folded = rows.filter((row) => row.type === type).map((row) => JSON.parse(String(row.payload)));
        expect(folded).toEqual([
          { ...events[6], delta: 'one tw\u0000o \ud83d\ude00 three four', metadata: { interlude: { whole: true } } },
        ]);
      }
    },
  );
});

describe('deltas', () => {
  const message = stream('TEXT_MESSAGE', 'messageId', 'TEXT_MESSAGE_CONTENT');
  const send = (from: number, events: AgUiEvent[]) =>
    ingest(
      target,
      events.map((event, index) => record(from + index, { event })),
    );
  const payloads = async () =>
    (
      await target.database.reader.execute(
        "SELECT payload FROM events WHERE type = 'TEXT_MESSAGE_CONTENT' ORDER BY position",
      )
    ).rows.map((row) => JSON.parse(String(row.payload)));

  it('stay unfolded until their message ends', async () => {
    await send(1, message.slice(0, 7));
    expect((await payloads()).map((event) => event.delta)).toEqual([
      'one ',
      'tw\u0000o \ud83d\ude00',
      ' three ',
      'four',
    ]);
  });

  it('are replaced by one that carries the whole text itself', async () => {
    await send(1, message.slice(0, 4));
    const whole = {
      type: 'TEXT_MESSAGE_CONTENT',
      messageId: 'x',
      delta: 'ANEW ',
      metadata: { interlude: { whole: true as const } },
    };
    await send(5, [whole, ...message.slice(6)]);
    expect((await payloads()).map((event) => event.delta)).toEqual(['ANEW four']);
  });

  it('keep the other fields of the last one', async () => {
    await send(1, message.slice(0, 6));
    const last = {
      ...message[6],
      metadata: { cost: 3, interlude: { taskRunId: 'z' } },
      rawEvent: { id: 9 },
    } as AgUiEvent;
    await send(7, [last, ...message.slice(7)]);
    expect(await payloads()).toMatchObject([
      { rawEvent: { id: 9 }, metadata: { cost: 3, interlude: { taskRunId: 'z', whole: true } } },
    ]);
  });

  it('stay unfolded when there is only one', async () => {
    await send(1, [...message.slice(0, 3), ...message.slice(7)]);
    expect(await payloads()).toEqual([message[2]]);
  });
});

it('many deltas fold into one event unless their text is too long', async () => {
  let seq = 0;
  const send = (events: AgUiEvent[]) =>
    ingest(
      target,
      events.map((event) => record(++seq, { event })),
    );
  const begin = (messageId: string): AgUiEvent => ({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' });
  const deltas = (messageId: string, count: number, text: string) =>
    Array.from({ length: count }, (): AgUiEvent => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text }));
  const end = (messageId: string): AgUiEvent => ({ type: 'TEXT_MESSAGE_END', messageId });
  await send([begin('many'), begin('long')]);
  for (let batch = 0; batch < 3; batch += 1) {
    await send([...deltas('many', 3_001, 'ab'), ...deltas('long', 600, 'x'.repeat(600))]);
  }
  await send([end('many'), end('long')]);
  const { rows } = await target.database.reader.execute(
    `SELECT entity_id, count(*) AS count, max(payload ->> 'delta') AS text FROM events
     WHERE type = 'TEXT_MESSAGE_CONTENT' GROUP BY entity_id ORDER BY entity_id`,
  );
  expect(rows.map(({ entity_id, count, text }) => [entity_id, count, String(text).length])).toEqual([
    ['long', 1_800, 600],
    ['many', 1, 18_006],
  ]);
});
