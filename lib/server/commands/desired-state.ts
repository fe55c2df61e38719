import type {
  Command,
  CommandBodies,
  CommandState,
  DesiredLogLevel,
  LogLevelResponse,
  SetLogLevel,
  SetWakeRule,
  WakeRuleResponse,
} from '@interlude/protocol/commands';
import { DEBUG_TTL_SECONDS } from '@interlude/protocol/limits';
import type { LogLevel } from '@interlude/protocol/vocabulary';
import { AGENT_ROW, sessionFromRow } from '@/db/read-model-rows';
import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { operatorName } from '@/lib/server/access/principal';
import type { RequestContext } from '@/lib/server/access/request-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { acceptCommand, type CommandServer, requireAgent } from './accept-command';
import { commandFromRow, queueCommand, type StoredCommand } from './queue-command';

/**
 * The desired state of a runner: an agent's log level and a session's wake rule. Both stay in force until replaced or
 * expired, even while the runner is absent. The agent's or session's row stores them; the newest command delivers them.
 *
 * Ordering: only the acknowledgement of the newest command counts. A new log level settles the earlier command in the
 * same transaction. The wake rules of a session are sent in the order in which they were set.
 * Failure: an expired command is queued again when a runner connects. So is a log level that went to an earlier
 * process, with the remaining time. The command keeps its `requestId`, so a runner applies it once.
 */
type LogLevelCommand = Extract<Command, { type: 'log-level.set' }>;
type WakeRuleCommand = Extract<Command, { type: 'wake-rule.set' }>;

/**
 * `PUT /agents/:id/log-level` `{"level","ttlSeconds"?}`: replaces the desired log level.
 *
 * @returns once the level is on disk, with or without a runner
 * @throws AppError `not_found`
 */
export async function putLogLevel(
  { ids: { agentId }, body: { level, ttlSeconds }, principal }: RequestContext<'agentId', { body: SetLogLevel }>,
  server: CommandServer,
): Promise<LogLevelResponse> {
  const defaultTtl = level === 'debug' ? DEBUG_TTL_SECONDS : null;
  const id = columnText(agentId);
  const requested = await server.database.writes.run(async (transaction) => {
    await requireAgent(transaction, agentId);
    const ttl = ttlSeconds === undefined ? defaultTtl : ttlSeconds;
    const requested = { agentId: id, level, ttlSeconds: ttl, by: operatorName(principal) };
    return requestLogLevel(transaction, requested, server.now());
  });
  server.commands.wake(id);
  return { ...requested, state: 'queued' };
}

/** @param requested `level` null: the runner's default; `ttlSeconds` null: until it is replaced */
export async function requestLogLevel(
  transaction: WriteTransaction,
  {
    agentId,
    level,
    ttlSeconds,
    by,
  }: { agentId: string; level: LogLevel | null; ttlSeconds: number | null; by: string },
  now: number,
): Promise<{ commandId: string; desired: DesiredLogLevel }> {
  transaction.touch(`agent:${agentId}`);
  const desired: DesiredLogLevel = {
    level,
    requestedAt: now,
    requestedBy: by,
    expiresAt: ttlSeconds === null ? null : now + ttlSeconds * 1_000,
    state: 'requested',
    reason: null,
  };
  const commandId = crypto.randomUUID();
  await queueLogLevel(transaction, agentId, desired, { commandId, requestId: commandId }, now);
  return { commandId, desired };
}

/**
 * Call when a runner has connected. Queues the level again if its command expired unacknowledged, or went to an earlier
 * process.
 */
export async function renewLogLevel(
  transaction: WriteTransaction,
  agentId: string,
  runnerId: string,
  now: number,
): Promise<void> {
  const current = await readLogLevel(transaction, agentId);
  if (current === null) return;
  const { command, state, claimedBy } = current.stored;
  const hasExpired = current.desired.expiresAt !== null && current.desired.expiresAt <= now;
  if (hasExpired || state === 'queued' || (state !== 'expired' && claimedBy === runnerId)) return;
  const desired: DesiredLogLevel = { ...current.desired, state: 'requested', reason: null };
  const { requestId } = command.body;
  await queueLogLevel(transaction, agentId, desired, { commandId: crypto.randomUUID(), requestId }, now);
}

/** Agents whose desired level has expired. */
export function expiredLogLevels(now: number): DueRows {
  const where = 'level_requested_at IS NOT NULL AND level_expires_at <= ?1';
  return { table: 'agents', key: 'id', where, args: [now], order: 'level_expires_at' };
}

/**
 * Withdraws expired levels. A runner that confirmed the level reverts by its own clock. A runner that did not may still
 * have an earlier level without a time limit, so the server requests its default.
 * @returns the number of agents; call again until it is 0
 */
export async function expireLogLevels(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { rows } = await transaction.execute(selectDue(expiredLogLevels(now), choice, AGENT_ROW.columns()));
  for (const { id: agentId, body } of rows.map(AGENT_ROW.read)) {
    const isConfirmed = body.logLevel.desired?.state !== 'requested';
    if (isConfirmed) await appendFacts(transaction, now, [{ kind: 'level-requested', agentId, desired: null }]);
    else await requestLogLevel(transaction, { agentId, level: null, ttlSeconds: null, by: 'time-limit' }, now);
  }
  return rows.length;
}

async function queueLogLevel(
  transaction: WriteTransaction,
  agentId: string,
  desired: DesiredLogLevel,
  { commandId, requestId }: { commandId: string; requestId: string },
  now: number,
): Promise<void> {
  const { level, expiresAt, requestedBy } = desired;
  await appendFacts(transaction, now, [{ kind: 'level-requested', agentId, desired }]);
  const ttl = expiresAt === null ? {} : { ttlSeconds: Math.ceil((expiresAt - now) / 1_000), expiresAt };
  const body: CommandBodies['log-level.set'] = { level, by: requestedBy, requestId, ...ttl };
  const fields = { id: commandId, agentId, sessionId: null, now, expiresAt };
  await queueCommand(transaction, { ...fields, type: 'log-level.set', body });
  await transaction.execute({
    sql: `UPDATE commands SET state = 'failed', reason = ?, lease_until = NULL
          WHERE agent_id = ? AND state IN ('queued', 'delivered') AND type = 'log-level.set' AND id <> ?`,
    args: [`superseded by a newer request for ${level ?? 'the default'}`, agentId, commandId],
  });
}

/** @returns null if no level is desired */
async function readLogLevel(
  transaction: WriteTransaction,
  agentId: string,
): Promise<{ desired: DesiredLogLevel; stored: StoredCommand & { command: LogLevelCommand } } | null> {
  const [agents, commands] = await transaction.batch([
    { sql: `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`, args: [agentId] },
    {
      sql: `SELECT * FROM commands INDEXED BY commands_of_level
            WHERE agent_id = ? AND type = 'log-level.set' ORDER BY position DESC LIMIT 1`,
      args: [agentId],
    },
  ]);
  const desired = AGENT_ROW.first(agents)?.body.logLevel.desired ?? null;
  const [newest] = commands?.rows ?? [];
  if (desired === null || newest === undefined) return null;
  return { desired, stored: commandFromRow(newest) as StoredCommand & { command: LogLevelCommand } };
}

/** The command with the remaining time. */
export function withTimeLeft(stored: StoredCommand, now: number): StoredCommand {
  const { command } = stored;
  if (command.type !== 'log-level.set' || command.body.expiresAt === undefined) return stored;
  const remainingSeconds = Math.max(1, Math.ceil((command.body.expiresAt - now) / 1_000));
  // Never more than requested, even after the clock was set back.
  const ttlSeconds = Math.min(remainingSeconds, command.body.ttlSeconds ?? remainingSeconds);
  return { ...stored, command: { ...command, body: { ...command.body, ttlSeconds } } };
}

/**
 * `PUT /sessions/:id/wake-rule` `{"when"}`
 * @throws AppError `not_found`, `conflict`
 */
export async function putWakeRule(
  { ids: { sessionId }, body: { clientId, when } }: RequestContext<'sessionId', { body: SetWakeRule }>,
  server: CommandServer,
): Promise<WakeRuleResponse> {
  const { answer: response } = await acceptCommand(server, {
    sessionId,
    clientId,
    request: { type: 'wake-rule.set', when },
    prepare: async (transaction, { id, agentId }) => {
      const newest = await newestWakeRule(transaction, id);
      await appendFacts(transaction, server.now(), [{ kind: 'wake-rule-set', agentId, sessionId: id, when }]);
      // An earlier command for the same rule only counts if it is the newest.
      return { body: { when }, repeats: (earlier) => earlier.when === when && newest?.body.when === when };
    },
  });
  return { ...response, when };
}

/** Limit per transaction, because each rule takes some milliseconds. */
const MAX_RENEWED = 20;

/**
 * Call when a runner has connected. Queues expired wake rules again, those of the most recently active sessions first.
 * @returns true if there may be more, and the caller must call again
 */
export async function renewWakeRules(transaction: WriteTransaction, agentId: string, now: number): Promise<boolean> {
  const { rows } = await transaction.execute({
    sql: `SELECT s.* FROM sessions AS s INDEXED BY sessions_with_rule
          WHERE s.agent_id = ? AND s.wake_rule IS NOT NULL AND NOT s.has_ended AND 'expired' = (
            SELECT c.state FROM commands AS c INDEXED BY commands_of_waking
            WHERE c.session_id = s.id AND c.type = 'wake-rule.set' ORDER BY c.position DESC LIMIT 1)
          ORDER BY s.last_event_at DESC LIMIT ${MAX_RENEWED}`,
    args: [agentId],
  });
  for (const { id: sessionId, wakeRule } of rows.map(sessionFromRow)) {
    if (wakeRule === null) continue;
    const fields = { id: crypto.randomUUID(), agentId, sessionId, now };
    await queueCommand(transaction, { ...fields, type: 'wake-rule.set', body: { when: wakeRule } });
  }
  return rows.length === MAX_RENEWED;
}

async function newestWakeRule(transaction: WriteTransaction, sessionId: string): Promise<WakeRuleCommand | null> {
  const { rows } = await transaction.execute({
    sql: `SELECT * FROM commands INDEXED BY commands_of_waking
          WHERE session_id = ? AND type = 'wake-rule.set' ORDER BY position DESC LIMIT 1`,
    args: [sessionId],
  });
  return rows[0] === undefined ? null : (commandFromRow(rows[0]).command as WakeRuleCommand);
}

/** Applies a runner's acknowledgement to the desired state, unless a newer command has replaced it. */
export async function applyAcknowledgement(
  transaction: WriteTransaction,
  agentId: string,
  command: Command,
  state: CommandState,
  reason: string | null,
  now: number,
): Promise<void> {
  if (state !== 'done' && state !== 'failed') return;
  if (command.type === 'log-level.set') {
    const current = await readLogLevel(transaction, agentId);
    if (current?.stored.command.id !== command.id) return;
    // Once the runner confirms its default, no level is desired.
    const isOver = state === 'done' && current.desired.level === null;
    const answered = state === 'done' ? ('confirmed' as const) : ('refused' as const);
    const desired = isOver ? null : { ...current.desired, state: answered, reason };
    await appendFacts(transaction, now, [{ kind: 'level-requested', agentId, desired }]);
  } else if (command.type === 'wake-rule.set' && command.sessionId !== null) {
    const { id, sessionId, body } = command;
    if ((await newestWakeRule(transaction, sessionId))?.id !== id) return;
    const when = state === 'done' ? body.when : null;
    await appendFacts(transaction, now, [{ kind: 'wake-rule-set', agentId, sessionId, when }]);
  }
}
