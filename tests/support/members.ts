import { createClient } from '@libsql/client';
import { makeSecret, textDigest } from '@/lib/server/access/secret';

/** The session cookie of Tom, a viewer. */
export const VIEWER_SECRET = `ils_${'v'.repeat(43)}`;

const CHANGED = 'UPDATE access SET version = version + 1';

/** Adds Lena, an admin, and Tom, who is signed in as a viewer. @returns removes both */
export async function addMembers({ databaseUrl }: { databaseUrl: string }): Promise<() => Promise<void>> {
  const database = createClient({ url: databaseUrl });
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

/** Signs an operator in once more, who is added first if nobody has that id. @returns the session cookie's value */
export async function signInOperator({ databaseUrl }: { databaseUrl: string }, id: string): Promise<string> {
  const database = createClient({ url: databaseUrl });
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
