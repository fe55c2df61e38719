import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { withoutServerMarks } from '@interlude/protocol/interlude-metadata';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { arbitraryBatches } from '../support/arbitrary-events';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../support/ingest-target';
import { MemoryLog } from '../support/memory-log';

/**
 * Ingest's read models (turns, placements, folded deltas, tasks) equal the projections, however records are split into
 * requests. MemoryLog applies the same placements without a database.
 */
let target: InProcessTarget;
afterEach(() => target.close());

const FOLDED = /^(TEXT_MESSAGE_CONTENT|TOOL_CALL_ARGS|REASONING_MESSAGE_CONTENT)$/;

it('ingest gives the same turns, texts, tasks and obligations as the projections for any batching', async () => {
  await fc.assert(
    fc.asyncProperty(
      arbitraryBatches.map((batches): AgUiEvent[] => batches.flat()),
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 10 }),
      async (events, sizes) => {
        target = await inProcessTarget(() => 1_000);
        const reference = new MemoryLog();
        const places: string[] = [];
        for (let from = 0, turn = 0; from < events.length; turn += 1) {
          const batch = events.slice(from, from + (sizes[turn % sizes.length] ?? 1));
          await ingest(
            target,
            batch.map((event, index) => record(from + index + 1, { agentId: 'a1', occurredAt: 5_000, event })),
          );
          for (const entry of reference.append(batch.map(withoutServerMarks))) places.push(entry.position);
          from += batch.length;
        }
        expect(await storedModel()).toEqual(referenceModel(reference, places));
        await target.close();
      },
    ),
    {
      numRuns: 150,
      examples: [
        // A user message restarted by the agent as its own is one obligation.
        [
          [
            { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm3', role: 'user', delta: '' },
            { type: 'RUN_FINISHED', threadId: 's1', runId: 'r1' },
            { type: 'TEXT_MESSAGE_START', messageId: 'm3', role: 'assistant' },
            { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm3', role: 'user', delta: ' ' },
          ],
          [1],
        ],
      ],
    },
  );
});

interface Model {
  turns: unknown[];
  unplaced: unknown[];
  tasks: unknown[];
  obligations: unknown[];
  owedCount: unknown;
}

/** The stored model with positions replaced by event order, because both models number positions differently. */
async function storedModel(): Promise<Model> {
  const { reader } = target.database;
  const [events, turns, tasks, obligations, sessions] = await reader.batch(
    [
      'SELECT * FROM events ORDER BY position',
      'SELECT * FROM turns ORDER BY position',
      'SELECT * FROM tasks ORDER BY position',
      'SELECT * FROM obligations ORDER BY position',
      `SELECT body->>'owedCount' AS owed_count FROM sessions`,
    ],
    'read',
  );
  // folded rows are gone, but positions within a batch are dense: count back from an existing row
  const seqAt = new Map<number, number>();
  for (const row of events?.rows ?? []) seqAt.set(Number(row.position), Number(row.seq));
  const seqOf = (position: unknown) => {
    for (let ahead = 0; ahead < 100; ahead += 1) {
      const seq = seqAt.get(Number(position) + ahead);
      if (seq !== undefined) return seq - ahead;
    }
    throw new Error(`no event at or after ${position}`);
  };
  const turnName = (id: unknown) => nameOf(id, seqOf);
  const shown = (turnId: unknown) =>
    (events?.rows ?? [])
      .filter((row) => row.turn_id === turnId)
      .map((row) => [row.seq, plain(JSON.parse(String(row.payload)))]);
  return {
    turns: (turns?.rows ?? []).map((row) => ({
      id: turnName(row.id),
      at: seqOf(row.position),
      kind: row.kind,
      state: row.state,
      trigger: row.trigger === null ? null : JSON.parse(String(row.trigger)),
      userMessageIds: JSON.parse(String(row.user_message_ids)),
      events: shown(row.id),
    })),
    unplaced: shown(null),
    tasks: (tasks?.rows ?? []).map((row) => {
      const body = JSON.parse(String(row.body));
      return { ...pickTask({ ...body, status: row.status }, turnName), at: seqOf(row.position) };
    }),
    obligations: (obligations?.rows ?? []).map((row) => {
      const { messageId, text, answeredInTurnId } = JSON.parse(String(row.body));
      return [messageId, text, row.state, turnName(answeredInTurnId), seqOf(row.position)];
    }),
    owedCount: Number(sessions?.rows[0]?.owed_count ?? 0),
  };
}

function referenceModel(log: MemoryLog, places: string[]): Model {
  const seqOf = (position: unknown) => places.indexOf(String(position)) + 1;
  const turnName = (id: unknown) => nameOf(id, seqOf);
  const shown = (turnId: string | null) =>
    log.rows.filter((row) => row.turnId === turnId).map(({ entry }) => [seqOf(entry.position), plain(entry.event)]);
  return {
    turns: [...log.headers.values()]
      .sort((a, b) => Number(a.position) - Number(b.position))
      .map((header) => ({
        id: turnName(header.id),
        at: seqOf(header.position),
        kind: header.kind,
        state: header.state,
        trigger: header.trigger,
        userMessageIds: header.userMessageIds,
        events: shown(header.id),
      })),
    unplaced: shown(null),
    tasks: [...log.tasks.values()]
      .sort((a, b) => Number(a.position) - Number(b.position))
      .map((task) => ({ ...pickTask(task, turnName), at: seqOf(task.position) })),
    obligations: [...log.obligations.values()].map(({ messageId, text, state, answeredInTurnId, position }) => [
      messageId,
      text,
      state,
      turnName(answeredInTurnId),
      seqOf(position),
    ]),
    owedCount: [...log.obligations.values()].filter(({ state }) => state === 'owed').length,
  };
}

function nameOf(turnId: unknown, seqOf: (position: unknown) => number): unknown {
  return typeof turnId === 'string' && turnId.startsWith('none:') ? `none:${seqOf(turnId.slice(5))}` : turnId;
}

/** Removes fold metadata and the request digest, which only ingest adds. */
function plain(event: AgUiEvent): unknown {
  const { metadata, ...rest } = JSON.parse(JSON.stringify(event));
  if (event.name === 'request:opened' && rest.value !== null && typeof rest.value === 'object') {
    const { digest: _digest, opened_position: _position, ...request } = rest.value;
    rest.value = request;
  }
  return FOLDED.test(event.type) ? rest : { ...rest, metadata };
}

function pickTask(task: Record<string, unknown> | object, turnName: (id: unknown) => unknown) {
  const { id, runId, status, description, summary, startedInTurnId, answeredInTurnId } = task as Record<
    string,
    unknown
  >;
  return {
    id,
    runId,
    status,
    description,
    summary,
    startedIn: turnName(startedInTurnId),
    answeredIn: turnName(answeredInTurnId),
  };
}
