import { openDatabase } from '@/db/client';
import { HistoryKeeper } from '@/lib/retention/history-keeper';
import { historyRetention } from '@/lib/retention/retention-settings';

const DAY_MS = 24 * 60 * 60_000;

/** Removes, as another process at the same database does, all that was received before a time and is not open. */
export async function removeTurnsBefore({ databaseUrl }: { databaseUrl: string }, time: number): Promise<void> {
  const database = await openDatabase({ url: databaseUrl });
  const now = Date.now();
  const env = { INTERLUDE_RETENTION_DAYS: String((now - time) / DAY_MS) };
  try {
    await new HistoryKeeper({ database, now: () => now }, historyRetention(env)).removeOld();
  } finally {
    await database.close();
  }
}
