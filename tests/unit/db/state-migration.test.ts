import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDatabase } from '@/db/client';
import journal from '@/db/migrations/meta/_journal.json';
import { wholeSight } from '@/lib/access/sight';
import { CommandHub } from '@/lib/commands/command-hub';
import { noSessions } from '@/lib/protocol/agent-state';
import { readAgents } from '@/lib/queries/read-agents';
import { readInbox } from '@/lib/queries/read-inbox';
import { readSession } from '@/lib/queries/read-sessions';
import before from '../../fixtures/databases/before-states.json';

/** A database as it was before sessions had observations; its rows were written by the version of then. */
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'interlude-migration-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function databaseOfThen(): Promise<string> {
  const url = pathToFileURL(join(folder, 'x.db')).href;
  const client = createClient({ url });
  const sql = await readFile('db/migrations/0000_tables.sql', 'utf8');
  await client.batch(sql.split('--> statement-breakpoint'));
  await client.batch([
    'CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)',
    {
      sql: 'INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)',
      args: ['x', journal.entries[0]?.when ?? 0],
    },
  ]);
  for (const [table, rows] of Object.entries(before)) {
    for (const row of rows as Record<string, string | number | null>[]) {
      const columns = Object.keys(row);
      const places = columns.map(() => '?').join(', ');
      await client.execute({
        sql: `INSERT INTO ${table} (${columns.map((column) => `"${column}"`).join(', ')}) VALUES (${places})`,
        args: Object.values(row),
      });
    }
  }
  client.close();
  return url;
}

it('a database from before there were observations has the states that it had, by the rules of now', async () => {
  const database = await openDatabase({ url: await databaseOfThen() });
  const now = Math.max(...before.sessions.map((row) => row.last_event_at)) + 5_000;
  await new CommandHub({ database, now: () => now, steady: () => now }).sweep();
  const states: Record<string, unknown[]> = {};
  for (const { id } of before.sessions) {
    const session = (await readSession(wholeSight(database), id))?.session;
    states[id] = [session?.state, session?.stateReason, session?.evidence.rule];
  }
  expect(states).toEqual({
    working: ['working', null, 14],
    failed: ['failed', 'No credit', 5],
    idle: ['idle', null, 14],
    background: ['waiting-on-background', null, 10],
    asks: ['needs-input', 'Run rm?', 2],
    ended: ['exited', 'exit', 1],
    died: ['exited', 'killed', 1],
    fresh: ['starting', null, 15],
  });
  const { agents } = await readAgents(wholeSight(database), { after: null, limit: 5, words: [] });
  const counts = {
    working: 1,
    failed: 1,
    idle: 1,
    'waiting-on-background': 1,
    'needs-input': 1,
    exited: 2,
    starting: 1,
  };
  expect(agents.map(({ sessionStates }) => sessionStates)).toEqual([{ ...noSessions(), ...counts }]);
  const running = before.sessions.reduce((sum, { body }) => sum + JSON.parse(body).runningTaskCount, 0);
  expect(running).toBeGreaterThan(0);
  expect(agents).toMatchObject([{ retiredAt: null, overdueCount: 0, runningTaskCount: running, brokenOffCount: 1 }]);
  const inbox = await readInbox(wholeSight(database), { after: null, limit: 10 });
  expect(inbox.items.map(({ kind, sessionId, title }) => [kind, sessionId, title])).toEqual([
    ['permission', 'asks', 'Run rm?'],
    ['failure', 'died', 'killed'],
    ['failure', 'failed', 'No credit'],
  ]);
  await database.close();
});
