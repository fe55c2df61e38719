import {
  COMMAND_EXPIRY_MS,
  COMMAND_LEASE_MS,
  PROGRESS_MS,
  RUNNER_AWAY_MS,
  RUNNER_GRACE_MS,
  WEBHOOK_LEASE_MS,
  WEBHOOK_RETRY_MS,
  WEBHOOK_SETTLE_MS,
} from '@interlude/protocol/limits';
import { AGENT_ROW } from '@/db/read-model-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { COMMANDS } from './command-table';

const TERMS = Object.entries(COMMANDS).map(([type, { termMs }]) => `WHEN '${type}' THEN ?3 + ${termMs}`);

/**
 * Clamps deadlines after a step of the server's clock: afterwards none is further away than its full term, and none has
 * moved nearer because the clock was set ahead.
 *
 * | column | term | after a step back, and at the start | after a step ahead |
 * |---|---|---|---|
 * | runners.alive_until | RUNNER_AWAY_MS | at most now + term | later by the step, at most now + term |
 * | runners.absence_due_at | RUNNER_GRACE_MS | same | same |
 * | sessions.state_due_at | PROGRESS_MS, the longest | now, if its last sign of life is in the future | same |
 * | sessions.gives_up_at | COMMAND_EXPIRY_MS | at most now + term | same |
 * | commands.lease_until | COMMAND_LEASE_MS | same | same |
 * | commands.expires_at | `termMs` of its kind | same | same |
 * | agents.level_expires_at | as requested, from level_requested_at | counted from now at the latest | same |
 * | obligations.owed_since | start of the reply limit | at most now | later by the step, at most now |
 * | tasks.unanswered_since | start of the result limit | same | same |
 * | attachments.sent_at | start of ATTACHMENT_KEPT_MS, until a message names it | same | same |
 * | webhook_deliveries.due_at | WEBHOOK_SETTLE_MS, then WEBHOOK_RETRY_MS, the longest | at most now + term | later by the step, at most now + term |
 * | webhook_deliveries.lease_until | WEBHOOK_LEASE_MS | same | same |
 * | agents.last_seen_at | start of silence | at most now | same, for agents that can still become silent |
 * | producers.last_seen_at | the newest record, for judging the clock | at most now | unchanged |
 * | inbox.snoozed_until | a wall-clock time that a person chose | unchanged | unchanged |
 * | runners.missed_at, first_connected_at | shown, never compared | unchanged | unchanged |
 *
 * Failure: if two servers of one database both clamp, a deadline moves to at most a full term from now.
 *
 * @param stepMs milliseconds by which the clock was stepped; 0 at the start
 */
export async function clampDeadlines(transaction: WriteTransaction, now: number, stepMs: number): Promise<void> {
  const ahead = Math.max(0, stepMs);
  await transaction.batch([
    {
      sql: `UPDATE runners SET alive_until = min(alive_until + ?1, ?2), absence_due_at = min(absence_due_at + ?1, ?3)
            WHERE alive_until IS NOT NULL OR absence_due_at IS NOT NULL`,
      args: [ahead, now + RUNNER_AWAY_MS, now + RUNNER_GRACE_MS],
    },
    { sql: `UPDATE obligations SET owed_since = min(owed_since + ?1, ?2) WHERE state = 'owed'`, args: [ahead, now] },
    {
      // The body must change as well, because the task's next change copies it to the column.
      sql: `UPDATE tasks SET unanswered_since = min(unanswered_since + ?1, ?2),
              body = json_set(body, '$.unansweredSince', min(unanswered_since + ?1, ?2))
            WHERE unanswered_since IS NOT NULL`,
      args: [ahead, now],
    },
    { sql: 'UPDATE attachments SET sent_at = min(sent_at + ?1, ?2) WHERE is_named = 0', args: [ahead, now] },
    {
      sql: `UPDATE webhook_deliveries SET lease_until = min(lease_until + ?1, ?3),
              due_at = min(due_at + ?1, CASE attempts WHEN 0 THEN ?4 ELSE ?2 END) WHERE state = 'waiting'`,
      args: [ahead, now + WEBHOOK_RETRY_MS, now + WEBHOOK_LEASE_MS, now + WEBHOOK_SETTLE_MS],
    },
    {
      sql: `UPDATE commands SET lease_until = min(lease_until + ?1, ?2),
              expires_at = min(expires_at + ?1, CASE type ${TERMS.join(' ')} END)
            WHERE state IN ('queued', 'delivered')`,
      args: [ahead, now + COMMAND_LEASE_MS, now],
    },
  ]);
  // Several rules set this deadline, so they run again with times clamped to now.
  await transaction.execute({
    sql: `UPDATE sessions SET state_due_at = CASE
            WHEN ?3 < 0 OR (?3 = 0 AND max(last_event_at, ifnull(seen_at, 0)) > ?4) THEN min(state_due_at, ?4)
            ELSE min(state_due_at + ?1, ?2) END
          WHERE state_due_at IS NOT NULL`,
    args: [ahead, now + PROGRESS_MS, stepMs, now],
  });
  await transaction.execute({
    sql: 'UPDATE sessions SET gives_up_at = min(gives_up_at + ?1, ?2) WHERE gives_up_at IS NOT NULL',
    args: [ahead, now + COMMAND_EXPIRY_MS],
  });
  await transaction.execute({ sql: 'UPDATE producers SET last_seen_at = ?1 WHERE last_seen_at > ?1', args: [now] });
  await clampLogLevels(transaction, now, ahead);
  await clampLastSeen(transaction, now, ahead);
}

async function clampLogLevels(transaction: WriteTransaction, now: number, ahead: number): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT ${AGENT_ROW.columns()} FROM agents WHERE level_requested_at IS NOT NULL
          AND (level_requested_at > ?1 OR (level_expires_at IS NOT NULL AND ?2 > 0))`,
    args: [now, ahead],
  });
  for (const { id, body } of rows.map(AGENT_ROW.read)) {
    const { desired } = body.logLevel;
    if (desired === null) continue;
    const requestedAt = Math.min(desired.requestedAt + ahead, now);
    const expiresAt = desired.expiresAt === null ? null : desired.expiresAt + requestedAt - desired.requestedAt;
    const fact = { kind: 'level-requested', agentId: id, desired: { ...desired, requestedAt, expiresAt } } as const;
    await appendFacts(transaction, now, [fact]);
  }
}

async function clampLastSeen(transaction: WriteTransaction, now: number, ahead: number): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT id, last_seen_at FROM agents WHERE last_seen_at > ?1
          OR (?2 > 0 AND (NOT is_silent OR id IN (SELECT agent_id FROM runners WHERE alive_until IS NOT NULL)))`,
    args: [now, ahead],
  });
  const facts = rows.map((row) => {
    const lastSeenAt = Math.min(Number(row.last_seen_at) + ahead, now);
    return { kind: 'clock-moved', agentId: String(row.id), lastSeenAt } as const;
  });
  await appendFacts(transaction, now, facts);
}
