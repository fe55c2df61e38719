import { MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LargestStatement, largestStatement } from '../support/database';
import { HOSTILE_CASES } from '../support/hostile-batches';
import { clearTables, longestBlock, sendHostile } from '../support/send-hostile';
import { type InProcessServer, inProcessServer } from '../support/server-target';
import { expectWithin, longestBlockMs } from '../support/timing';

/**
 * The largest records that PROTOCOL.md permits, and everything that reads them. The bench of the same name enforces 100
 * ms; a busy test machine gets fifteen times that. Before requests and turns were folded by id and in pieces, these
 * blocked other requests for 3 to 100 seconds. The faults run the worst against a real server.
 */
const AT_MOST_MS = 1_500;
const WORST = [
  'requests opened in one turn, then resolved',
  'user messages in a run’s input',
  'interleaved deltas of messages',
  'subagent text',
  'turns that each name unique messages and tasks',
  'fifty thousand running tasks at the end of their session',
  'open answers that each reply to a thousand messages',
  'a message of a hundred thousand deltas, then ended',
  'snapshots with the maximum number of messages, repeated with changes',
  'as many snapshots of a growing call as a request holds',
  'maximum-size log lines of two random letters',
  'requests for as many names that are integers, and answers with as many',
];
/** No statement carries more than the largest record and a piece of others, or returns more rows. */
const MOST_GIVEN = 2 * MAX_RECORD_BYTES;
const MOST_ROWS = 4_000;

let server: InProcessServer;
let largest: LargestStatement;
beforeAll(async () => {
  server = await inProcessServer();
  largest = largestStatement(server.database);
});
afterAll(() => server.close());

describe('accepted input does not block other requests', () => {
  test.each(HOSTILE_CASES.filter(({ name }) => WORST.includes(name)))('$name', async (hostile) => {
    await clearTables(server.database);
    const worst = longestBlock(await sendHostile(server, hostile, longestBlockMs));
    expectWithin(worst.longestMs, AT_MOST_MS, worst.what);
    expect(largest.argumentLength).toBeLessThanOrEqual(MOST_GIVEN);
    expect(largest.rows).toBeLessThanOrEqual(MOST_ROWS);
  });
});
