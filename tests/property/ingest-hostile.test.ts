import { EventType } from '@ag-ui/core';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { foldItems } from '@interlude/protocol/projections/items';
import { EMPTY_TRANSCRIPT, foldTranscript } from '@interlude/protocol/projections/transcript';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { type InProcessTarget, inProcessTarget, sendEvents } from '../support/ingest-target';

/**
 * Agents are untrusted. Whatever a record contains, the request succeeds, every record is in the log or in quarantine,
 * and other records of the request are stored.
 */
let target: InProcessTarget;
afterEach(() => target.close());

const hostileText = fc.oneof(
  fc.string(),
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    'toString',
    '\u0000',
    'a\ud800',
    '\udc00b',
    "'; DROP TABLE events; --",
  ),
);
const anything = fc.oneof(
  { weight: 2, arbitrary: hostileText },
  { weight: 1, arbitrary: fc.constantFrom(null, true, 0, -0, 1e300, 2 ** 53, -1.5) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
);
const mostly = (sane: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 3, arbitrary: sane }, { weight: 1, arbitrary: anything });
const id = (prefix: string) => mostly(fc.integer({ min: 1, max: 2 }).map((number) => `${prefix}${number}`));

const interlude = fc.record(
  {
    turn: mostly(fc.constantFrom('user', 'between-run')),
    trigger: mostly(
      fc.record({ kind: anything, taskIds: mostly(fc.array(id('t'))), taskRunIds: anything }, { requiredKeys: [] }),
    ),
    userMessageIds: mostly(fc.array(id('m'))),
    foldedTaskIds: mostly(fc.array(id('t'))),
    whole: mostly(fc.constant(true)),
  },
  { requiredKeys: [] },
);
const event = mostly(
  fc.record(
    {
      type: mostly(fc.constantFrom(...Object.values(EventType))),
      name: mostly(fc.constantFrom(...Object.values(CUSTOM))),
      value: mostly(
        fc.record(
          {
            task_id: id('t'),
            request_id: id('q'),
            status: mostly(fc.constantFrom('completed', 'failed', 'running')),
            usage: anything,
            exit_code: anything,
            description: anything,
            ended_at: anything,
            count: anything,
          },
          { requiredKeys: [] },
        ),
      ),
      messageId: id('m'),
      toolCallId: id('c'),
      runId: id('r'),
      parentRunId: anything,
      subagentRunId: mostly(fc.constant(undefined)),
      role: mostly(fc.constantFrom('user', 'assistant')),
      delta: anything,
      content: anything,
      input: mostly(
        fc.record({
          messages: mostly(fc.array(mostly(fc.record({ id: id('m'), role: anything, content: anything })))),
        }),
      ),
      outcome: anything,
      message: anything,
      code: anything,
      metadata: mostly(fc.record({ interlude: mostly(interlude) })),
    },
    { requiredKeys: ['type'] },
  ),
);
const record = fc.record(
  {
    kind: mostly(fc.constantFrom('event', 'event', 'event', 'log', 'status', 'lost')),
    agentId: id('a'),
    sessionId: id('s'),
    occurredAt: mostly(fc.constantFrom(0, 1_795_170_000_000, 8_640_000_000_000_000)),
    event,
    log: mostly(fc.record({ level: mostly(fc.constantFrom('info', 'error')), component: anything, message: anything })),
    status: mostly(fc.record({ kind: anything, state: anything })),
    lost: mostly(fc.record({ count: mostly(fc.integer({ min: 1, max: 9 })), reason: mostly(fc.constant('full')) })),
  },
  { requiredKeys: [] },
);

// The timeout allows for a busy machine.
it('ingest stores or quarantines every record, whatever it contains', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(record, { minLength: 1, maxLength: 15 }), { minLength: 1, maxLength: 4 }),
      async (batches) => {
        target = await inProcessTarget(() => 1_795_170_000_000);
        let seq = 0;
        let kept = 0;
        for (const batch of batches) {
          const records = batch.map((fields) => ({ ...fields, seq: ++seq }));
          const response = await sendEvents(target, { producer: { id: 'p1', epoch: 1 }, records });
          const answer = await response.json();
          expect(answer).toMatchObject({ ackedSeq: seq });
          expect(answer.accepted + answer.rejected.length).toBe(batch.length);
          kept += answer.rejected.length;
        }
        // read everything back: text that libSQL can't read would crash the process
        const tables = await target.dump();
        expect(tables.quarantine).toHaveLength(kept);
        for (const table of ['sessions', 'agents', 'tasks']) {
          for (const row of tables[table] as { body: string }[]) JSON.parse(row.body);
        }
        const entries = (tables.events as Record<string, unknown>[]).map((row) => ({
          position: String(row.position),
          occurredAt: Number(row.occurred_at),
          receivedAt: Number(row.received_at),
          event: JSON.parse(String(row.payload)),
        }));
        expect(foldItems([], entries)).toBeInstanceOf(Array);
        foldTranscript(EMPTY_TRANSCRIPT, entries);
        await target.close();
      },
    ),
    { numRuns: 200 },
  );
});
