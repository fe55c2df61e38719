import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SignInCode } from '@interlude/protocol/access';
import { createClient } from '@libsql/client';
import { onTestFinished } from 'vitest';
import { openDatabase } from '@/db/client';
import { makeSecret, textDigest } from '@/lib/server/access/secret';
import { HistoryKeeper } from '@/lib/server/retention/history-keeper';
import { historyRetention } from '@/lib/server/retention/retention-settings';
import { WAIT_MS } from './timeouts';

/** The session cookie of Tom, a viewer. */
export const VIEWER_SECRET = `ils_${'v'.repeat(43)}`;

const CHANGED = 'UPDATE access SET version = version + 1';

/** Adds Lena, an admin, and Tom, a signed-in viewer. @returns removes both */
export async function addMembers({ databaseUrl }: { databaseUrl: string }): Promise<() => Promise<void>> {
  const database = createClient({ url: databaseUrl, timeout: WAIT_MS });
  const now = Date.now();
  const member = `INSERT INTO members (id, issuer, subject, name, role, created_at, last_sign_in_at)
    VALUES (?1, 'https://id.example', ?1, ?1, ?2, ?3, ?3)`;
  const credential = `INSERT INTO credentials (id, kind, hash, name, role, scope, member_id, created_at, last_used_at, idle_ms)
    VALUES ('session-tom', 'session', ?1, 'Tom', 'viewer', '{"kind":"everything"}', 'Tom', ?2, ?2, 3600000)`;
  await database.batch([
    { sql: member, args: ['Lena', 'admin', now] },
    { sql: member, args: ['Tom', 'viewer', now] },
    { sql: credential, args: [textDigest(VIEWER_SECRET), now] },
    CHANGED,
  ]);
  return async () => {
    await database.batch([
      "DELETE FROM credentials WHERE id = 'session-tom'",
      "DELETE FROM members WHERE id IN ('Lena', 'Tom')",
      CHANGED,
    ]);
    database.close();
  };
}

/** Creates a sign-in for an operator, and the member if missing. @returns the session cookie's value */
export async function signInOperator({ databaseUrl }: { databaseUrl: string }, id: string): Promise<string> {
  const database = createClient({ url: databaseUrl, timeout: WAIT_MS });
  const secret = makeSecret('session');
  const now = Date.now();
  await database.batch([
    {
      sql: `INSERT OR IGNORE INTO members (id, issuer, subject, name, role, created_at, last_sign_in_at)
        VALUES (?1, 'https://id.example', ?1, ?1, 'operator', ?2, ?2)`,
      args: [id, now],
    },
    {
      sql: `INSERT INTO credentials (id, kind, hash, name, role, scope, member_id, created_at, last_used_at, idle_ms)
        VALUES (?1, 'session', ?1, ?2, 'operator', '{"kind":"everything"}', ?2, ?3, ?3, 3600000)`,
      args: [textDigest(secret), id, now],
    },
    CHANGED,
  ]);
  database.close();
  return secret;
}

/** Creates a sign-in link. @param origin start of the link */
export async function newSignInLink(server: { url: string; token: string }, origin = server.url): Promise<string> {
  const headers = { authorization: `Bearer ${server.token}` };
  const response = await fetch(`${server.url}/api/v1/sign-in-codes`, { method: 'POST', headers });
  return `${origin}${((await response.json()) as SignInCode).path}`;
}

/** Serves a cross-site page until the test ends. @returns its URL */
export async function anotherSite(html: string): Promise<string> {
  const site = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html));
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  onTestFinished(() => {
    site.closeAllConnections();
    site.close();
  });
  return `http://localhost:${(site.address() as AddressInfo).port}/`;
}

const DAY_MS = 24 * 60 * 60_000;

/** Removes closed rows received before a time, as another process on the same database does. */
export function removeTurnsBefore(server: { databaseUrl: string }, time: number): Promise<void> {
  const now = Date.now();
  return retain(server, now, { INTERLUDE_RETENTION_DAYS: String((now - time) / DAY_MS) });
}

/** Removes all current audit entries in the same way, as if that many days had passed. */
export function removeAuditLater(server: { databaseUrl: string }, days: number): Promise<void> {
  const kept = { INTERLUDE_RETENTION_DAYS: 'forever', INTERLUDE_AUDIT_RETENTION_DAYS: '1' };
  return retain(server, Date.now() + days * DAY_MS, kept);
}

async function retain({ databaseUrl }: { databaseUrl: string }, now: number, env: Record<string, string>) {
  const database = await openDatabase({ url: databaseUrl });
  try {
    await new HistoryKeeper({ database, now: () => now }, historyRetention(env)).removeOld();
  } finally {
    await database.close();
  }
}
