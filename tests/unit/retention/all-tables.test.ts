import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getTableName, is } from 'drizzle-orm';
import { SQLiteTable } from 'drizzle-orm/sqlite-core';
import { expect, test } from 'vitest';
import * as schema from '@/db/schema';

const root = join(import.meta.dirname, '..', '..', '..');

/** Tables without retention, and why they stay small. */
const BOUNDED: Record<string, string> = {
  sessions: 'one row each, see docs/database.md',
  session_aliases: 'one for each agent that names a session of another',
  agents: 'one row each, see docs/database.md',
  producers: 'one for each outbox, see docs/database.md',
  producer_sessions: 'one for each session and outbox that speaks for it',
  agent_logs: 'one for each agent',
  runners: 'one for each agent',
  members: 'one for each person',
  access: 'one row',
  server_keys: 'one for each purpose',
  audit_start: 'one row',
  webhook_cursor: 'one row',
  counter: 'one row',
  compatibility: 'one row',
  leases: 'one for each kind of work',
};

test('every table is pruned, or has a reason to stay small', () => {
  const sources = ['lib', 'db'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(join(root, folder, file), 'utf8')),
  );
  const tables: string[] = Object.values(schema)
    .filter((value) => is(value, SQLiteTable))
    .map((table) => getTableName(table));
  expect(tables.length).toBeGreaterThan(30);
  const grows = tables.filter(
    (name) => !Object.hasOwn(BOUNDED, name) && !sources.some((text) => text.includes(`DELETE FROM ${name} `)),
  );
  expect(grows).toEqual([]);
  expect(Object.keys(BOUNDED).filter((name) => !tables.includes(name))).toEqual([]);
});
