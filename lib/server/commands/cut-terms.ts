import {
  COMMAND_EXPIRY_MS,
  COMMAND_LEASE_MS,
  INTERRUPT_EXPIRY_MS,
  MESSAGE_EXPIRY_MS,
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
import { writeDesired } from './desired-level';

/**
 * Adjusts deadlines when the server's clock was moved: nothing is due later than its whole term from now, and nothing
 * is due sooner because the clock was put ahead.
 *
 * | column | its term | moved back, or found at the start | moved ahead |
 * |---|---|---|---|
 * | runners.alive_until | RUNNER_AWAY_MS | at most now and its term | later by as much, at most now and its term |
 * | runners.absence_due_at | RUNNER_GRACE_MS | the same | the same |
 * | sessions.state_due_at | PROGRESS_MS, the longest | now, if it was heard of later than that | the same |
 * | sessions.gives_up_at | COMMAND_EXPIRY_MS | at most now and its term | the same |
 * | commands.lease_until | COMMAND_LEASE_MS | the same | the same |
 * | commands.expires_at | that of its type | the same | the same |
 * | agents.level_expires_at | what was asked, from level_requested_at | requested now at the latest | the same |
 * | obligations.owed_since | the set time for replies is counted from it | now at the latest | later by as much, now at the latest |
 * | tasks.unanswered_since | the set time for results is counted from it | the same | the same |
 * | attachments.sent_at | ATTACHMENT_KEPT_MS is counted from it, until a message names it | the same | the same |
 * | webhook_deliveries.due_at | WEBHOOK_SETTLE_MS, then WEBHOOK_RETRY_MS, the longest | at most now and its term | later by as much, at most now and its term |
 * | webhook_deliveries.lease_until | WEBHOOK_LEASE_MS | the same | the same |
 * | agents.last_seen_at | none; silence is counted from it | now at the latest | of those that may fall silent, the same |
 * | producers.last_seen_at | none: how near the clock is to the newest record | now at the latest | stays |
 * | inbox.snoozed_until | none: a time of the clock that a person named | stays | stays |
 * | runners.missed_at, first_connected_at | none: shown, and compared with nothing | stays | stays |
 *
 * Failure: if two servers of one database both do it, a term is at most a whole one again.
 */
export async function cutTerms(transaction: WriteTransaction, now: number, stepMs: number): Promise<void> {
  const ahead = Math.max(0, stepMs);
  await transaction.batch([
    {
      sql: `UPDATE runners SET alive_until = min(alive_until + ?1, ?2), absence_due_at = min(absence_due_at + ?1, ?3)
            WHERE alive_until IS NOT NULL OR absence_due_at IS NOT NULL`,
      args: [ahead, now + RUNNER_AWAY_MS, now + RUNNER_GRACE_MS],
    },
    {
      sql: `UPDATE obligations SET owed_since = min(owed_since + ?1, ?2) WHERE state = 'owed'`,
      args: [ahead, now],
    },
    {
      // in the body, too: the next change of the task writes the column from there
      sql: `UPDATE tasks SET unanswered_since = min(unanswered_since + ?1, ?2),
              body = json_set(body, '$.unansweredSince', min(unanswered_since + ?1, ?2))
            WHERE unanswered_since IS NOT NULL`,
      args: [ahead, now],
    },
    {
      sql: 'UPDATE attachments SET sent_at = min(sent_at + ?1, ?2) WHERE is_named = 0',
      args: [ahead, now],
    },
    {
      sql: `UPDATE webhook_deliveries SET lease_until = min(lease_until + ?1, ?3),
              due_at = min(due_at + ?1, CASE attempts WHEN 0 THEN ?4 ELSE ?2 END) WHERE state = 'waiting'`,
      args: [ahead, now + WEBHOOK_RETRY_MS, now + WEBHOOK_LEASE_MS, now + WEBHOOK_SETTLE_MS],
    },
    {
      sql: `UPDATE commands SET lease_until = min(lease_until + ?1, ?2),
              expires_at = min(expires_at + ?1, CASE
                WHEN type = 'message' THEN ?3 WHEN type IN ('interrupt', 'session.end') THEN ?4 ELSE ?5 END)
            WHERE state IN ('queued', 'delivered')`,
      args: [
        ahead,
        now + COMMAND_LEASE_MS,
        now + MESSAGE_EXPIRY_MS,
        now + INTERRUPT_EXPIRY_MS,
        now + COMMAND_EXPIRY_MS,
      ],
    },
  ]);
  // Which term it is is not known here: the rules look again, by observations cut to now.
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
  await cutLevels(transaction, now, ahead);
  await cutSeen(transaction, now, ahead);
}

async function cutLevels(transaction: WriteTransaction, now: number, ahead: number): Promise<void> {
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
    await writeDesired(transaction, id, { ...desired, requestedAt, expiresAt }, now);
  }
}

async function cutSeen(transaction: WriteTransaction, now: number, ahead: number): Promise<void> {
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
