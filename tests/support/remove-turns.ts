import { openDatabase } from '@/db/client';
import { HistoryKeeper } from '@/lib/server/retention/history-keeper';
import { historyRetention } from '@/lib/server/retention/retention-settings';

const DAY_MS = 24 * 60 * 60_000;

/** Removes, as another process at the same database does, all that was received before a time and is not open. */
export function removeTurnsBefore(server: { databaseUrl: string }, time: number): Promise<void> {
  const now = Date.now();
  return retain(server, now, { INTERLUDE_RETENTION_DAYS: String((now - time) / DAY_MS) });
}

/** Removes, in the same way, what the audit has until now, as if it were that many days later. */
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
