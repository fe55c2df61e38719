import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { noListed, noSessions } from '@interlude/protocol/session-states';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDatabase } from '@/db/client';
import journal from '@/db/migrations/meta/_journal.json';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { readAgents } from '@/lib/server/queries/read-agents';
import { readCounts } from '@/lib/server/queries/read-counts';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readSession } from '@/lib/server/queries/read-sessions';
import before from '../../fixtures/databases/before-states.json';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'interlude-migration-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

type Rows = Record<string, Record<string, string | number | null>[]>;

/** A database after the first `count` migrations, with rows as that version wrote them. */
async function databaseAfter(count: number, tables: Rows): Promise<string> {
  const url = pathToFileURL(join(folder, 'x.db')).href;
  const client = createClient({ url });
  const entries = journal.entries.slice(0, count);
  for (const { tag } of entries) {
    const sql = await readFile(`db/migrations/${tag}.sql`, 'utf8');
    await client.batch(sql.split('--> statement-breakpoint'));
  }
  await client.batch([
    'CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)',
    {
      sql: 'INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)',
      args: ['x', entries.at(-1)?.when ?? 0],
    },
  ]);
  for (const [table, rows] of Object.entries(tables)) {
    for (const row of rows) {
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

it('sessions from before observations keep their states, by the current rules', async () => {
  const database = await openDatabase({ url: await databaseAfter(1, before as Rows) });
  const now = Math.max(...before.sessions.map((row) => row.last_event_at)) + 5_000;
  await new CommandHub({ database, now: () => now, steady: () => now }).sweep();
  const states: Record<string, unknown[]> = {};
  for (const { id } of before.sessions) {
    const session = (await readSession(unscoped(database), id))?.session;
    states[id] = [session?.state, session?.stateReason, session?.evidence.rule];
  }
  expect(states).toEqual({
    working: ['working', null, 14],
    failed: ['failed', 'No credit', 5],
    idle: ['idle', null, 14],
    background: ['waiting-on-background', null, 10],
    asks: ['needs-input', 'Run rm?', 2],
    ended: ['exited', null, 1],
    died: ['exited', 'exit code 1: killed', 1],
    fresh: ['starting', null, 15],
  });
  const { agents } = await readAgents(unscoped(database), { after: null, limit: 5, words: [] });
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
  const listed = { ...noListed(), ...counts, exited: 1, failed: 2 };
  expect(agents).toMatchObject([{ listedStates: listed, state: 'needs-input', stateSince: expect.any(Number) }]);
  const { groups, agentStates } = await readCounts(unscoped(database), 'local');
  expect(groups).toMatchObject({ 'needs-input': 1, failed: 2, exited: 1, archived: 0 });
  expect(agentStates).toMatchObject({ 'needs-input': 1, none: 0 });
  const inbox = await readInbox(unscoped(database), { after: null, limit: 10 });
  expect(inbox.items.map(({ kind, sessionId, title }) => [kind, sessionId, title])).toEqual([
    ['permission', 'asks', 'Run rm?'],
    ['failure', 'died', 'exit code 1: killed'],
    ['failure', 'failed', 'No credit'],
  ]);
  await database.close();
});

it('sessions and agents from before their counts have them', async () => {
  const marks = { pinnedAt: null, archivedAt: null, seenState: null };
  const session = (id: string, state: string, arrangement: object, listed_as: string | null = null) => ({
    ...{ id, agent_id: 'a', state, listed_as, last_event_at: 1, places: '{}', updated_position: 1 },
    body: JSON.stringify({ stateSince: 7, arrangement: { ...marks, ...arrangement } }),
  });
  const agent = (id: string, body: object) => ({
    ...{ id, last_seen_at: 1, updated_position: 1, body: JSON.stringify({ retiredAt: null, state: null, ...body }) },
  });
  const url = await databaseAfter(19, {
    sessions: [
      session('idle', 'idle', {}),
      session('new', 'failed', { pinnedAt: 1, seenState: 6 }),
      session('seen', 'failed', { seenState: 7 }),
      session('crashed', 'exited', { seenState: 7 }, 'failed'),
      session('seen-and-pinned', 'unknown', { seenState: 7, pinnedAt: 1 }, 'lost'),
      session('asks', 'needs-input', { pinnedAt: 1 }),
      session('archived', 'working', { pinnedAt: 1, archivedAt: 1 }),
    ],
    agents: [agent('a', { state: 'needs-input' }), agent('b', {}), agent('c', { state: 'exited', retiredAt: 4 })],
  });
  const database = await openDatabase({ url });
  const counts = await readCounts(unscoped(database), 'local');
  const some = (of: Record<string, number>) => Object.entries(of).filter(([, count]) => count > 0);
  expect(Object.fromEntries(some(counts.groups))).toEqual({
    ...{ idle: 1, failed: 1, seen: 2, pinned: 1, 'needs-input': 1, archived: 1 },
  });
  expect([some(counts.agentStates), some(counts.retiredStates)]).toEqual([
    [
      ['needs-input', 1],
      ['none', 1],
    ],
    [['exited', 1]],
  ]);
  await database.close();
});

it('credentials from before sign-ins expired end with their sign-in and their creator', async () => {
  const made = (id: string, kind: string, parent: string | null, rest: Rows[string][number] = {}) => ({
    ...{ id, kind, hash: id, name: id, role: 'admin', scope: '{"kind":"everything"}', created_at: 1, last_used_at: 1 },
    ...{ parent_id: parent, ...rest },
  });
  const credentials = [
    made('local', 'session', null),
    made('member', 'session', null, { member_id: 'ada' }),
    made('of-member', 'token', 'member'),
    made('embed', 'embed', 'member', { expires_at: 50_000_000 }),
    made('expires', 'token', 'owner', { expires_at: 9 }),
    made('child', 'token', 'expires'),
    made('grandchild', 'token', 'child', { expires_at: 12 }),
    made('sooner', 'token', 'expires', { expires_at: 5 }),
    made('revoked', 'token', 'owner', { revoked_at: 3 }),
    made('left', 'token', 'revoked', { expires_at: 7 }),
    made('left-too', 'embed', 'left', { revoked_at: 2 }),
  ];
  const claim = '{"by":{"id":"chosen by a browser","name":"Ada"},"at":1}';
  const item = { id: 'i', kind: 'failure', agent_id: 'a', body: '{}', words: '', claim };
  const counts = { version: 1, since: 1, position: 1, opened_position: 1, updated_position: 1 };
  const database = await openDatabase({
    url: await databaseAfter(15, { credentials, inbox: [{ ...item, ...counts }] }),
  });
  // without proof of the named parent
  expect((await database.reader.execute('SELECT claim FROM inbox')).rows).toEqual([{ claim: null }]);
  const { rows } = await database.reader.execute('SELECT id, expires_at, revoked_at FROM credentials ORDER BY rowid');
  const [dayMs, hourMs] = [86_400_000, 3_600_000];
  expect(rows.map((row) => [row.id, row.expires_at, row.revoked_at])).toEqual([
    ['local', 1 + 30 * dayMs, null],
    ['member', 1 + 12 * hourMs, null],
    ['of-member', null, null],
    ['embed', 1 + 12 * hourMs, null],
    ['expires', 9, null],
    ['child', 9, null],
    ['grandchild', 9, null],
    ['sooner', 5, null],
    ['revoked', null, 3],
    ['left', 7, 3],
    ['left-too', 7, 2],
  ]);
  await database.close();
});
