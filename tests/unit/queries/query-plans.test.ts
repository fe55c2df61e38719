import { EVERY_LINE } from '@interlude/protocol/projections/log-filter';
import { EVERYTHING } from '@interlude/protocol/scope';
import type { InStatement } from '@libsql/client';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { chunkId } from '@/db/log-rows';
import { unscoped } from '@/lib/server/access/request-context';
import { readAfter, replayFrom } from '@/lib/server/event-log/read-after';
import { readChunkWindow, selectInChunks, selectSpan } from '@/lib/server/queries/log-chunks';
import { lineCondition } from '@/lib/server/queries/log-conditions';
import { readAgent, readAgents } from '@/lib/server/queries/read-agents';
import { readDelivery } from '@/lib/server/queries/read-delivery';
import { readLogLines } from '@/lib/server/queries/read-logs';
import { readAgentSessions, readSessionPage, readSessions } from '@/lib/server/queries/read-sessions';
import { readTask, readTaskOutput, readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript, readTurnAt } from '@/lib/server/queries/read-transcript';
import { type TestDatabase, temporaryDatabase } from '../../support/database';

/**
 * A page costs the same in a session of 10,000 turns. Checked by the query plan, which is the same on every machine:
 * every table is reached by an index, and nothing is sorted that an index could give in order.
 */
let database: TestDatabase;
beforeAll(async () => {
  database = await temporaryDatabase();
});
afterAll(() => database.dispose());

async function plansOf(read: () => Promise<unknown>): Promise<string[]> {
  const batches = [vi.spyOn(database.reader, 'batch'), vi.spyOn(database.tail, 'batch')];
  await read();
  const statements = batches.flatMap((batch) => batch.mock.calls.flatMap(([all]) => all));
  for (const batch of batches) batch.mockRestore();
  const plans: string[] = [];
  for (const statement of statements) plans.push(...(await planOf(statement)));
  return plans;
}

async function planOf(statement: InStatement): Promise<string[]> {
  const { sql, args } = typeof statement === 'string' ? { sql: statement, args: [] } : statement;
  const { rows } = await database.reader.execute({ sql: `EXPLAIN QUERY PLAN ${sql}`, args });
  return rows.map((row) => String(row.detail));
}

const TABLES = /^SCAN (events|turns|tasks|sessions|agents|log_lines|producer_sessions|quarantine)\b/;
const isWasteful = (detail: string) => TABLES.test(detail) || detail.includes('USE TEMP B-TREE FOR ORDER BY');

describe('uses an index and its order', () => {
  const limits = { rows: 500, bytes: 1_000_000 };
  const wanted = { fleet: true, sessionIds: ['s1', 's2'], agentIds: ['a1'], scope: EVERYTHING };
  const filter = { ...EVERY_LINE, level: 'warn' as const, components: ['hook'], terms: ['timeout'] };
  const reads: Record<string, () => Promise<unknown>> = {
    'the newest page of a transcript': () => readTranscript(unscoped(database), 's1', { before: null, limit: 50 }),
    'an older page of a transcript': () => readTranscript(unscoped(database), 's1', { before: '5000', limit: 50 }),
    'the sessions': () => readSessions(unscoped(database)),
    'a page of the sessions': () =>
      readSessionPage(unscoped(database), { after: { group: 'working', at: 5, id: 's1' }, limit: 100 }),
    'a page of an agent’s sessions': () =>
      readAgentSessions(unscoped(database), 'a1', { after: { group: 'agent', at: 5, id: 's1' }, limit: 100 }),
    'a page of the agents': () =>
      readAgents(unscoped(database), { after: { group: 'agents', at: 0, id: 'a1' }, limit: 100 }),
    'a session’s tasks': () => readTasks(unscoped(database), 's1'),
    'what a task has written': () => readTaskOutput(unscoped(database), 's1', 't1', { runId: null, position: null }),
    'one task': () => readTask(unscoped(database), 's1', 't1'),
    'the newest log lines': () =>
      readLogLines(unscoped(database), 'a1', { filter, place: { kind: 'newest' }, limit: 200 }),
    'the log lines after one': () =>
      readLogLines(unscoped(database), 'a1', {
        filter: EVERY_LINE,
        place: { kind: 'after', position: 5 },
        limit: 200,
      }),
  };
  for (const [what, read] of Object.entries(reads)) {
    test(what, async () => {
      const plans = await plansOf(read);
      expect(plans.length).toBeGreaterThan(1);
      expect(plans.filter(isWasteful)).toEqual([]);
    });
  }

  test('catching up seeks each topic, the tailer one range for all', async () => {
    const far = await plansOf(() => readAfter(database, wanted, 10, replayFrom(10), limits));
    const near = await plansOf(() => readAfter(database, wanted, 10, 'tail', limits));
    // Sorts only the page: at most `rows` rows.
    expect(far.filter((detail) => TABLES.test(detail))).toEqual([]);
    expect(near.filter((detail) => TABLES.test(detail))).toEqual([]);
    expect(far.filter((detail) => detail.includes('events_by_session (session_id=? AND position>?)'))).toHaveLength(2);
    expect(near).toContain('SEARCH events USING INTEGER PRIMARY KEY (rowid>?)');
  });

  test('the turn at a time', async () => {
    const plans = await plansOf(() => readTurnAt(unscoped(database), 's1', 1_795_170_000_000));
    expect(plans.filter(isWasteful)).toEqual([]);
    expect(plans).toContain('SEARCH turns USING INDEX turns_by_start (session_id=? AND started_at<?)');
    expect(plans).toContain('SEARCH tasks USING COVERING INDEX tasks_by_start (session_id=? AND started_at<?)');
  });

  test('the missing records of a session', async () => {
    const plans = await plansOf(() => readDelivery(unscoped(database), 's1'));
    // Sorts only the outboxes that wrote to it.
    expect(plans.filter((detail) => TABLES.test(detail))).toEqual([]);
    expect(plans.filter((detail) => / (events|quarantine|q) /.test(detail))).toEqual([
      'SEARCH events USING INDEX events_lost (session_id=?)',
      'SEARCH quarantine USING INDEX quarantine_missing (session_id=? AND agent_id=?)',
      'SEARCH quarantine USING COVERING INDEX quarantine_missing (session_id=? AND agent_id=?)',
      'SEARCH q USING COVERING INDEX quarantine_unnamed (producer_id=?)',
    ]);
  });

  describe('of a log', () => {
    const region = {
      agentNumber: 1,
      first: { id: chunkId(1, 1), firstPosition: 1, lastPosition: 100 },
      last: { id: chunkId(1, 6401), firstPosition: 6401, lastPosition: 6500 },
    };
    const slice = { agentId: 'a1', edge: 5000, low: 0, high: 9000, condition: lineCondition(filter), limit: 200 };

    for (const direction of ['older', 'newer'] as const) {
      test(`${direction} lines are a range of its index, bound at both ends`, async () => {
        for (const statement of selectSpan({ ...slice, direction }, 128)) {
          const plans = await planOf(statement);
          const searches = plans.filter((detail) => detail.includes(' log_lines '));
          expect(searches.length).toBeGreaterThan(0);
          for (const detail of searches) expect(detail).toContain('(agent_id=? AND position>? AND position<?)');
          // Sorts one page at most.
          expect(plans.filter((detail) => TABLES.test(detail))).toEqual([]);
        }
      });

      test(`${direction} lines of some chunks are a range each`, async () => {
        const plans = await planOf(selectInChunks({ ...slice, direction }, [region.first]));
        const searches = plans.filter((detail) => detail.includes(' log_lines '));
        expect(searches).toEqual([
          'SEARCH log_lines USING INTEGER PRIMARY KEY (rowid=?)',
          'SEARCH log_lines USING INDEX log_lines_by_agent (agent_id=? AND position>? AND position<?)',
        ]);
      });

      test(`${direction} chunks come from the full-text table in its order, or are a range of the table`, async () => {
        const search = await plansOf(() => readChunkWindow(database.reader, region, filter, direction, region.last.id));
        expect(search.filter((detail) => /VIRTUAL TABLE INDEX \d+:.*M/.test(detail))).toHaveLength(1);
        expect(search.filter((detail) => isWasteful(detail) || /SCAN (c|log_chunks)\b/.test(detail))).toEqual([]);
        const plain = { ...filter, terms: [] };
        const range = await plansOf(() => readChunkWindow(database.reader, region, plain, direction, region.last.id));
        expect(range).toContain('SEARCH c USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)');
        expect(range.filter(isWasteful)).toEqual([]);
      });
    }
  });

  test('an agent', async () => {
    const plans = await plansOf(() => readAgent(unscoped(database), 'a1'));
    expect(plans.filter((detail) => TABLES.test(detail))).toEqual([]);
  });
});
