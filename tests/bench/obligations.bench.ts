import type { Database } from '@/db/client';
import { callRoute } from '../support/call-route';
import { temporaryDatabase } from '../support/database';
import { benchContext } from './bench-context';
import { note, percentile, report } from './report';

/**
 * `GET /agents/:id/reply-obligations` with a thousand and with a million messages and the same few pending replies.
 * Both alternate, so that other load affects both.
 */
const OPEN = 5;
const WARM_UP = 500;
const MEASURED = 4000;

const few = await databaseWith(1000);
const many = await databaseWith(1_000_000);
const times = { few: [] as number[], many: [] as number[] };
for (let round = 0; round < WARM_UP + MEASURED; round += 1) {
  const [first, second] = round % 2 === 0 ? (['few', 'many'] as const) : (['many', 'few'] as const);
  for (const name of [first, second]) {
    const took = await ask(name === 'few' ? few : many);
    if (round >= WARM_UP) times[name].push(took);
  }
}
const [fewP99, manyP99] = [percentile(times.few, 0.99), percentile(times.many, 0.99)];
note('reply-obligations p99, 1,000 messages', fewP99, 'ms');
note('reply-obligations p99, 1,000,000 messages', manyP99, 'ms');
report('reply-obligations p99, 1,000,000 over 1,000 messages', manyP99 / fewP99, '×', { atMost: 1.5 });
await Promise.all([few.dispose(), many.dispose()]);

/** All messages of one agent over a hundred sessions, with the pending ones spread evenly. */
async function databaseWith(count: number) {
  const database = await temporaryDatabase();
  const body = `json_object('messageId', 'm' || n, 'from', json_object('kind', 'person', 'id', 'operator'),
    'text', 'Is the build green yet, and what did the tests say?', 'sentAt', n)`;
  await database.writes.run((transaction) =>
    transaction.batch([
      {
        sql: `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
          INSERT INTO obligations (session_id, message_id, position, agent_id, state, body, updated_position)
          SELECT 's' || (n % 100), 'm' || n, n, 'agent-1', iif(n % (?1 / ?2) = 0, 'owed', 'answered'), ${body}, n
          FROM numbers`,
        args: [count, OPEN],
      },
      { sql: 'INSERT INTO counter (id, position) VALUES (1, ?)', args: [count] },
    ]),
  );
  return database;
}

async function ask(database: Database): Promise<number> {
  const context = benchContext(database);
  const startedAt = performance.now();
  const response = await callRoute(context, 'GET', '/agents/agent-1/reply-obligations');
  const { obligations } = (await response.json()) as { obligations: unknown[] };
  const took = performance.now() - startedAt;
  if (obligations.length !== OPEN) throw new Error(`${obligations.length} pending replies, expected ${OPEN}`);
  return took;
}
