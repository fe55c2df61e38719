import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { applyMigration } from '@/db/migrate';
import journal from '@/db/migrations/meta/_journal.json';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

const TAG = '0012_well_formed';
const HALF = '\ud83d';
/** Columns of JSON, as a server that let halves in would have written them. */
const JSON_COLUMNS = [
  'events.payload',
  'quarantine.record',
  'sessions.body',
  'sessions.places',
  'sessions.memory',
  'agents.body',
  'tasks.body',
  'obligations.body',
  'turns.trigger',
  'commands.body',
  'commands.result',
];

/** Everything an agent may send, some of it in quarantine. */
async function fill(target: InProcessTarget): Promise<void> {
  const custom = (name: string, value: object) => ({ type: 'CUSTOM', name, value });
  const user = { messageId: 'u', role: 'user' };
  const trigger = { kind: 'task', taskIds: ['t'] };
  const events = [
    { type: 'TEXT_MESSAGE_START', ...user },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'u', delta: 'hello' },
    { type: 'TEXT_MESSAGE_END', messageId: 'u' },
    custom('task:started', { task_id: 't', description: 'deploy' }),
    { type: 'RUN_STARTED', runId: 'r', metadata: { interlude: { turn: 'between-run', trigger } } },
  ];
  const kinds = [{ kind: 'status', status: { kind: 'claude' } }, { kind: 'novelty' }];
  await ingest(
    target,
    [...events.map((event) => ({ event })), ...kinds].map((fields, at) => record(at + 1, fields)),
  );
  await target.database.writes.run((transaction) =>
    transaction.execute(`INSERT INTO commands (id, position, agent_id, session_id, type, body, state, created_at,
      expires_at, result, updated_position) VALUES ('c', 1, 'a1', 's1', 'interrupt', '{}', 'done', 1, 1, '{}', 1)`),
  );
}

it('what was stored with half a surrogate pair is mended by the migration, and nothing else is touched', async () => {
  const target = await inProcessTarget();
  await fill(target);
  const before = await target.dump();
  const when = journal.entries.find(({ tag }) => tag === TAG)?.when ?? 0;
  const sql = await readFile(new URL(`../../../db/migrations/${TAG}.sql`, import.meta.url), 'utf8');
  await target.database.writes.run(async (transaction) => {
    for (const name of JSON_COLUMNS) {
      const [table, column] = name.split('.');
      // in a string and in a key, and beside them a text that only looks like one
      const half = JSON.stringify({ [`k${HALF}`]: [HALF], looks: 'like \\ud83d' }).slice(1);
      const { rows } = await transaction.execute(
        `UPDATE ${table} SET ${column} = substr(${column}, 1, length(${column}) - 1) || iif(${column} = '{}', '', ',') || '${half.replaceAll("'", "''")}' WHERE ${column} IS NOT NULL AND substr(${column}, 1, 1) = '{' RETURNING 1`,
      );
      expect([name, rows.length > 0]).toEqual([name, true]);
    }
    await transaction.execute(
      "INSERT INTO runners (agent_id, runner_id, started_at, stream_id) VALUES ('x', 'r', 9999999999999999, 's')",
    );
    // as if this one had not run yet; those behind it have changed other things
    await transaction.execute({ sql: 'DELETE FROM __drizzle_migrations WHERE created_at = ?', args: [when] });
    await applyMigration(transaction, { tag: TAG, when, sql, hash: 'of this test' });
  });
  const after = await target.dump();
  for (const name of JSON_COLUMNS) {
    const [table = '', column = ''] = name.split('.');
    for (const row of after[table] as Record<string, unknown>[]) {
      const json = String(row[column] ?? '{}');
      expect([name, json]).toEqual([name, expect.not.stringMatching(/(?<!\\)\\ud/)]);
      if (json.includes('looks'))
        expect(JSON.parse(json)).toMatchObject({ 'k\ufffd': ['\ufffd'], looks: 'like \\ud83d' });
    }
  }
  expect(after.runners).toMatchObject([{ started_at: 8_640_000_000_000_000 }]);
  expect(after.__drizzle_migrations).toHaveLength(journal.entries.length);
  expect(after.log_lines).toEqual(before.log_lines);
  // what would have ended the process: a text taken out of the JSON
  const { rows } = await target.database.reader.execute(
    "SELECT value FROM events, json_tree(payload) WHERE value = '\ufffd'",
  );
  expect(rows.length).toBeGreaterThan(0);
  await target.close();
});
