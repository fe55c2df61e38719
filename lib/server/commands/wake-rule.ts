import type { Command, CommandState, SetWakeRule, WakeRule, WakeRuleAnswer } from '@interlude/protocol/commands';
import { sessionFromRow } from '@/db/read-model-rows';
import type { WriteTransaction } from '@/db/writes';
import type { Asked } from '@/lib/server/access/asked';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { askSession } from './ask-session';
import type { CommandServer } from './command-hub';
import { commandFromRow, type StoredCommand } from './command-row';
import { queueCommand } from './queue-command';

/**
 * When a runner wakes a session's agent without being asked each time. What people want is in the session's row; the
 * newest command carries it to the runner, which keeps it over its restarts.
 *
 * Ordering: the commands of a session are sent in the order in which they were asked, so the newest is what holds.
 * Failure: a runner that refuses leaves no rule; one that was away for so long that the command expired is asked again
 * when it is back.
 */
type RuleCommand = Extract<Command, { type: 'wake-rule.set' }>;
type StoredRule = StoredCommand & { command: RuleCommand };

/**
 * `PUT /sessions/:id/wake-rule` `{"when"}`
 * @throws AppError `not_found`, `conflict`
 */
export async function putWakeRule(
  { ids: { sessionId }, body: { clientId, when } }: Asked<'sessionId', { body: SetWakeRule }>,
  server: CommandServer,
): Promise<WakeRuleAnswer> {
  const answer = await askSession(server, {
    sessionId,
    clientId,
    ask: { type: 'wake-rule.set', when },
    prepare: async (transaction, { id, agentId }) => {
      const newest = await newestRule(transaction, id);
      await writeRule(transaction, agentId, id, when, server.now());
      // an earlier one that asks for the same counts only if nothing else was asked since
      return { body: { when }, repeats: (earlier) => earlier.when === when && newest?.command.body.when === when };
    },
  });
  return { ...answer, when };
}

/** What the runner's answer to a command means for the rule: nothing if there is a newer one. */
export async function ruleAnswered(
  transaction: WriteTransaction,
  agentId: string,
  { id, sessionId, body }: RuleCommand,
  state: CommandState,
  now: number,
): Promise<void> {
  if (sessionId === null || (state !== 'done' && state !== 'failed')) return;
  if ((await newestRule(transaction, sessionId))?.command.id !== id) return;
  await writeRule(transaction, agentId, sessionId, state === 'done' ? body.when : null, now);
}

/** Most rules that are asked again in one go: each takes some milliseconds. */
const MOST_RENEWED = 20;

/**
 * A runner has connected: asks it again for what nobody took in time, of the sessions last heard of first.
 * @returns whether there may be more: call again
 */
export async function renewRules(transaction: WriteTransaction, agentId: string, now: number): Promise<boolean> {
  const { rows } = await transaction.execute({
    sql: `SELECT s.* FROM sessions AS s INDEXED BY sessions_with_rule
          WHERE s.agent_id = ? AND s.wake_rule IS NOT NULL AND NOT s.has_ended AND 'expired' = (
            SELECT c.state FROM commands AS c INDEXED BY commands_of_waking
            WHERE c.session_id = s.id AND c.type = 'wake-rule.set' ORDER BY c.position DESC LIMIT 1)
          ORDER BY s.last_event_at DESC LIMIT ${MOST_RENEWED}`,
    args: [agentId],
  });
  for (const { id: sessionId, wakeRule } of rows.map(sessionFromRow)) {
    if (wakeRule === null) continue;
    const fields = { id: crypto.randomUUID(), agentId, sessionId, now };
    await queueCommand(transaction, { ...fields, type: 'wake-rule.set', body: { when: wakeRule } });
  }
  return rows.length === MOST_RENEWED;
}

async function newestRule(transaction: WriteTransaction, sessionId: string): Promise<StoredRule | null> {
  const { rows } = await transaction.execute({
    sql: `SELECT * FROM commands INDEXED BY commands_of_waking
          WHERE session_id = ? AND type = 'wake-rule.set' ORDER BY position DESC LIMIT 1`,
    args: [sessionId],
  });
  return rows[0] === undefined ? null : (commandFromRow(rows[0]) as StoredRule);
}

/** @param when null: no rule holds */
async function writeRule(
  transaction: WriteTransaction,
  agentId: string,
  sessionId: string,
  when: WakeRule | null,
  now: number,
): Promise<void> {
  await appendFacts(transaction, now, [{ kind: 'wake-rule-set', agentId, sessionId, when }]);
}
