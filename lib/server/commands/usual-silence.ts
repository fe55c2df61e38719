import type { WriteTransaction } from '@/db/writes';

const WEEK_MS = 7 * 24 * 3_600_000;
/** Shorter gaps between two events of a turn are no silence. */
const LEAST_MS = 1_000;
/** The sample: the newest sessions of the kind, and the newest events of each. */
const SESSIONS = 12;
const EVENTS = 250;
/** Fewer silences have no meaningful 99th percentile. */
const FEW = 100;

/**
 * The 99th percentile of the silences within turns of a kind of agent, in milliseconds, sampled over seven days; 0 if there
 * are too few.
 */
export async function usualSilence(transaction: WriteTransaction, kind: string, now: number): Promise<number> {
  const { rows } = await transaction.execute({
    sql: `SELECT s.id FROM agents AS a CROSS JOIN sessions AS s ON s.agent_id = a.id
          WHERE a.body->>'$.kind' = ?1 AND a.last_seen_at >= ?2 AND s.last_event_at >= ?2
          ORDER BY s.last_event_at DESC LIMIT ${SESSIONS}`,
    args: [kind, now - WEEK_MS],
  });
  if (rows.length === 0) return 0;
  const found = await transaction.batch(rows.map(({ id }) => ({ sql: NEWEST, args: [String(id), now - WEEK_MS] })));
  const silences: number[] = [];
  for (const { rows: events } of found) {
    for (const [at, { turn_id, received_at }] of events.entries()) {
      const later = events[at - 1];
      const ms = later?.turn_id === turn_id ? Number(later?.received_at) - Number(received_at) : 0;
      if (ms >= LEAST_MS) silences.push(ms);
    }
  }
  if (silences.length < FEW) return 0;
  silences.sort((a, b) => a - b);
  return silences[Math.floor(silences.length * 0.99)] ?? 0;
}

const NEWEST = `SELECT turn_id, received_at FROM events WHERE session_id = ? AND turn_id IS NOT NULL
  AND turn_id NOT LIKE 'none:%' AND turn_id NOT LIKE 'task:%' AND received_at >= ? ORDER BY position DESC LIMIT ${EVENTS}`;
