import { PROGRESS_MS } from '@interlude/protocol/limits';
import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { usualSilence } from './usual-silence';

/**
 * States that change by time alone: a report of work expires, a message is on its way for a minute at most. The row says when
 * it is due, so any instance resolves the same, also after a restart.
 */

/** Most sessions of one transaction. */
const MAX_RESOLVED = 100;

/** The sessions whose state may have changed. */
export function dueStates(now: number): DueRows {
  return { table: 'sessions', key: 'id', where: 'state_due_at <= ?1', args: [now], order: 'state_due_at' };
}

const KIND = `(SELECT body->>'$.kind' FROM agents WHERE id = sessions.agent_id)`;

/** @returns how many sessions were looked at; call again until it is 0 */
export async function resolveDueStates(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const columns = `id, agent_id, iif(state = 'working' AND body->>'$.lastHeardAt' <= ${now - PROGRESS_MS}, ${KIND}, NULL) AS silent_kind`;
  const { rows } = await transaction.execute(selectDue(dueStates(now), choice, columns, MAX_RESOLVED));
  const usual = new Map<string, number>();
  for (const { silent_kind } of rows) {
    const kind = silent_kind === null ? null : String(silent_kind);
    if (kind !== null && !usual.has(kind)) usual.set(kind, await usualSilence(transaction, kind, now));
  }
  const facts = rows.map((row) => ({
    kind: 'state-due' as const,
    agentId: String(row.agent_id),
    sessionId: String(row.id),
    usualSilenceMs: usual.get(String(row.silent_kind)) ?? 0,
  }));
  await appendFacts(transaction, now, facts);
  return rows.length;
}
