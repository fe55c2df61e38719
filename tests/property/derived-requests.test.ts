import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { positionFromNumber } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { EMPTY_TRANSCRIPT, foldTranscript, type TranscriptState } from '@interlude/protocol/projections/transcript';
import type { RequestItem, SessionSummary, TranscriptPage } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import { type InProcessServer, inProcessServer } from '../support/server-target';

/**
 * Requests derived from an agent's events are the same however its records are split, live or reloaded, with correct
 * counts and without duplicates.
 */

const id = (prefix: string, count: number) => fc.integer({ min: 1, max: count }).map((n) => `${prefix}${n}`);
const questions = (question: string) => JSON.stringify({ questions: [{ question }] });
const one = (event: AgUiEvent) => [event];
const custom = (name: string, value: object): AgUiEvent[] => [{ type: 'CUSTOM', name, value }];

const call = fc
  .record({ toolCallId: id('c', 3), toolCallName: fc.constantFrom('AskUserQuestion', 'Bash'), inChunks: fc.boolean() })
  .map(({ toolCallId, toolCallName, inChunks }): AgUiEvent[] => {
    const [head, tail] = [questions('Which?').slice(0, 9), questions('Which?').slice(9)];
    return inChunks
      ? [
          { type: 'TOOL_CALL_CHUNK', toolCallId, toolCallName, delta: head },
          { type: 'TOOL_CALL_CHUNK', delta: tail },
        ]
      : [
          { type: 'TOOL_CALL_START', toolCallId, toolCallName },
          { type: 'TOOL_CALL_ARGS', toolCallId, delta: head },
          { type: 'TOOL_CALL_ARGS', toolCallId, delta: tail },
          { type: 'TOOL_CALL_END', toolCallId },
        ];
  });

const interrupts = fc
  .array(
    fc.record({ id: fc.option(id('i', 3), { nil: undefined }), toolCallId: fc.option(id('c', 3), { nil: undefined }) }),
    {
      maxLength: 3,
    },
  )
  .map((list) => one({ type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: list } }));

/** Excludes interrupted turns, whose unanswered calls stay in the turn and derive no request. */
const whole = fc.oneof(
  { weight: 3, arbitrary: call },
  { weight: 3, arbitrary: interrupts },
  { weight: 2, arbitrary: fc.constant(one({ type: 'RUN_FINISHED' })) },
  id('m', 6).map((messageId): AgUiEvent[] => [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'user' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: 'x' },
    { type: 'TEXT_MESSAGE_END', messageId },
  ]),
  id('a', 3).map((messageId) => one({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })),
  id('c', 3).map((toolCallId) => one({ type: 'TOOL_CALL_RESULT', messageId: 't', toolCallId, content: 'x' })),
  fc
    .record({
      request_id: fc.oneof(id('q', 2), id('c', 3)),
      tool_use_id: id('c', 3),
      question: fc.constantFrom('Which?', 'What?'),
    })
    .map(({ question, ...value }) =>
      custom('request:opened', { ...value, kind: 'question', title: question, input: JSON.parse(questions(question)) }),
    ),
  fc
    .oneof(id('q', 2), id('c', 3), id('i', 3))
    .map((request_id) => custom('request:resolved', { request_id, outcome: 'allowed' })),
  id('c', 3).map((toolCallId) =>
    one({
      type: 'MESSAGES_SNAPSHOT',
      messages: [
        {
          id: 'a1',
          role: 'assistant',
          toolCalls: [{ id: toolCallId, function: { name: 'AskUserQuestion', arguments: questions('Which?') } }],
        },
        ...(toolCallId === 'c1' ? [{ id: 'm1', role: 'user', content: 'x' }] : []),
      ],
    }),
  ),
);

const run = fc
  .record({
    resume: fc.option(
      fc.array(fc.record({ interruptId: id('i', 3), status: fc.constantFrom('resolved', 'cancelled') })),
      {
        nil: undefined,
      },
    ),
    messageId: fc.option(id('m', 6), { nil: undefined }),
    isOwn: fc.boolean(),
  })
  .map(({ resume, messageId, isOwn }): AgUiEvent => {
    const messages = messageId === undefined ? [] : [{ id: messageId, role: 'user', content: 'x' }];
    const input = resume === undefined && messageId === undefined ? {} : { input: { messages, resume } };
    return {
      type: 'RUN_STARTED',
      threadId: 's',
      ...(isOwn ? { metadata: { interlude: { turn: 'between-run' } } } : input),
    };
  });

/** Consecutive complete runs. */
const histories = fc
  .array(fc.tuple(run, fc.array(whole, { maxLength: 8 }), fc.array(whole, { maxLength: 2 })), {
    minLength: 1,
    maxLength: 6,
  })
  .map((runs) =>
    runs.flatMap(([starts, inside, after], index): AgUiEvent[] => [
      { ...starts, runId: `r${index}` },
      ...inside.flat().filter(({ type }) => type !== 'RUN_FINISHED'),
      inside.flat().find(({ type }) => type === 'RUN_FINISHED') ?? { type: 'RUN_FINISHED' },
      ...after.flat().filter(({ type }) => type !== 'RUN_FINISHED'),
    ]),
  );

it('derived requests are the same for any batching, live and reloaded, with correct counts', async () => {
  const server = await inProcessServer();
  let serial = 0;
  try {
    await fc.assert(
      fc.asyncProperty(
        histories,
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 8 }),
        async (events, sizes) => {
          const requests: unknown[] = [];
          for (const pieces of [[events.length], sizes, [1]]) {
            serial += 1;
            const { items, summary } = await followed(server, `s${serial}`, events, pieces);
            const open = items.filter(({ outcome }) => outcome === null);
            expect(summary.pendingRequestCount).toBe(open.length);
            expect(summary.state === 'needs-input').toBe(open.length > 0);
            for (const { toolCallId } of open.filter(isOfCall)) {
              expect(open.filter((other) => !isDerived(other) && other.toolCallId === toolCallId)).toEqual([]);
            }
            requests.push(items.map(withoutPlace));
          }
          expect(requests[1]).toEqual(requests[0]);
          expect(requests[2]).toEqual(requests[0]);
        },
      ),
      { numRuns: 60 },
    );
  } finally {
    await server.close();
  }
});

/** Sends a history in batches and follows it as a page does. */
async function followed(
  server: InProcessServer,
  sessionId: string,
  events: readonly AgUiEvent[],
  sizes: readonly number[],
) {
  let live: TranscriptState = EMPTY_TRANSCRIPT;
  for (let from = 0, turn = 0; from < events.length; turn += 1) {
    const piece = events.slice(from, from + (sizes[turn % sizes.length] ?? 1));
    const records = piece.map((event, index) => record(from + index + 1, { agentId: sessionId, sessionId, event }));
    await ingest(server, records, 1, sessionId);
    live = foldTranscript(live, await entriesAfter(server, sessionId, live.position));
    from += piece.length;
  }
  const page = (await (await server.get(`/api/v1/sessions/${sessionId}/transcript`)).json()) as TranscriptPage;
  expect(live.turns).toEqual(page.turns);
  const { session } = (await (await server.get(`/api/v1/sessions/${sessionId}`)).json()) as { session: SessionSummary };
  const items = page.turns.flatMap((turn) => turn.items).filter((item): item is RequestItem => item.kind === 'request');
  return { items, summary: session };
}

async function entriesAfter(server: InProcessServer, sessionId: string, after: string): Promise<EventEntry[]> {
  const { rows } = await server.database.reader.execute({
    sql: 'SELECT * FROM events WHERE session_id = ? AND position > ? ORDER BY position',
    args: [sessionId, Number(after)],
  });
  return rows.map((row) => ({
    position: positionFromNumber(Number(row.position)),
    occurredAt: Number(row.occurred_at),
    receivedAt: Number(row.received_at),
    event: JSON.parse(String(row.payload)),
  }));
}

/** Only derived requests have a tool name here. */
function isDerived({ toolName }: RequestItem): boolean {
  return toolName !== null;
}

/** True if derived from a call without a result. */
function isOfCall(item: RequestItem): boolean {
  return isDerived(item) && item.id === item.toolCallId;
}

/** Removes positions, which depend on other rows, ids derived from them, and the time of receipt. */
function withoutPlace(item: RequestItem): object {
  const { position: _position, openedPosition: _opened, digest: _digest, receivedAt: _received, ...rest } = item;
  return { ...rest, id: rest.id.replace(/^interrupt:\d+/, 'interrupt').replace(/@\d+$/, '@') };
}
