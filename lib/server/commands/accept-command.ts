import type { CommandBodies, CommandResponse, CommandType, Sending } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';
import { digestOf } from '@interlude/protocol/request-digest';
import { sendingTo } from '@interlude/protocol/sending';
import { AGENT_ROW, agentFromRow, SESSION_ROW, sessionFromRow } from '@/db/read-model-rows';
import type { Reader } from '@/db/reader';
import { asks, sessions } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { Yielder } from '@/db/yield-to-loop';
import { notFound } from '@/lib/server/access/principal';
import type { ServerContext } from '@/lib/server/access/request-context';
import { type AnswerableRequest, sessionNow, storedFold } from '@/lib/server/ingest/project-session';
import type { DECISIONS } from './command-table';
import { commandFromRow, findOpenCommand, queueCommand, type StoredCommand } from './queue-command';

export interface CommandServer extends ServerContext {
  commands: {
    /** Wakes the stream of an agent's runner, which sends the new commands. */
    wake(agentId: string): void;
  };
}

interface SessionCommand<Type extends CommandType> {
  sessionId: string;
  clientId: string | undefined;
  /** The request as received. Only an equal request may reuse its `clientId`. */
  request: { type: Type; [field: string]: unknown };
  /** Bytes held in memory while the write is queued. */
  bytes?: number;
  /**
   * Validates the request and builds the command's body. `repeats`: true for an open command that requests the same and
   * is returned instead. `sending`: returned now and for every repetition of the request.
   */
  prepare: (
    transaction: WriteTransaction,
    session: WritableSession,
    commandId: string,
  ) => Promise<{
    body: CommandBodies[Type];
    repeats?: (earlier: CommandBodies[Type]) => boolean;
    sending?: Sending;
  }>;
}

/**
 * Accepts a command for a session: deduplicates it, validates it, queues it and wakes the runner's stream.
 *
 * @returns once the command is on disk; idempotent per `clientId`
 * @throws AppError `not_found`, `conflict`: `session_ended`, `client_id_reused`, and the errors of `prepare`
 */
export async function acceptCommand<Type extends CommandType>(
  server: CommandServer,
  { sessionId, clientId, request, bytes, prepare }: SessionCommand<Type>,
): Promise<{ answer: CommandResponse; sending: Sending | null }> {
  const now = server.now();
  const yielder = new Yielder();
  const key = dedupeKey(sessionId, clientId, request);
  await yielder.yieldIfDue();
  const accepted = await server.database.writes.run(
    async (transaction) => {
      const before = await findRepeat(transaction, key);
      if (before !== null && before.command !== null) return { ...before.command, sending: before.sending };
      const session = await writableSession(transaction, sessionId, now);
      const { agentId } = session;
      const id = crypto.randomUUID();
      const { body, repeats, sending = null } = await prepare(transaction, session, id);
      const open = repeats && (await findOpenCommand(transaction, agentId, session.id, request.type, repeats));
      if (open) {
        await recordRequest(transaction, key, open.command.id, sending);
        return { ...open, sending };
      }
      const waits = !session.hasRunner;
      const fields = { id, agentId, sessionId: session.id, clientId, waits, now };
      const command = await queueCommand(transaction, { ...fields, type: request.type, body });
      await recordRequest(transaction, key, command.id, sending);
      return { agentId, command, state: 'queued' as const, sending };
    },
    { bytes },
  );
  server.commands.wake(accepted.agentId);
  const { command, state, sending } = accepted;
  return { answer: { commandId: command.id, state }, sending };
}

/** A request with a `clientId`, and a digest of its content. */
interface DedupeKey {
  sessionId: string;
  clientId: string;
  digest: string;
}

/** @returns null without a `clientId`, which makes every request new */
export function dedupeKey(
  sessionId: string,
  clientId: string | undefined,
  request: { type: CommandType | keyof typeof DECISIONS; [field: string]: unknown },
): DedupeKey | null {
  if (clientId === undefined) return null;
  return { sessionId: columnText(sessionId), clientId: columnText(clientId), digest: digestOf(request) };
}

const ASK = shapeOf(asks, 'said');

/**
 * Finds an earlier request with the same `clientId`, unless retention has removed it.
 *
 * @returns `command`: null if the request took effect without one
 * @throws AppError `conflict` (`client_id_reused`) if any field of the request differs
 */
export async function findRepeat(
  transaction: WriteTransaction,
  key: DedupeKey | null,
): Promise<{ command: StoredCommand | null; sending: Sending | null } | null> {
  if (key === null) return null;
  const { rows } = await transaction.execute({
    sql: `SELECT asks.digest, asks.command_id, asks.said, commands.* FROM asks LEFT JOIN commands ON commands.id = asks.command_id
          WHERE asks.session_id = ? AND asks.client_id = ?`,
    args: [key.sessionId, key.clientId],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const command = row.command_id === null ? null : commandFromRow(row);
  if (row.digest === key.digest) return { command, sending: ASK.read(row).said as Sending | null };
  const earlier = command === null ? 'a different request' : `a different command (${command.command.type})`;
  const message = `This clientId was used for ${earlier}. Send this request with a new clientId.`;
  throw conflict('client_id_reused', message, command === null ? {} : { commandId: command.command.id });
}

export async function recordRequest(
  transaction: WriteTransaction,
  key: DedupeKey | null,
  commandId: string | null,
  sending: Sending | null = null,
): Promise<void> {
  if (key === null) return;
  const said = sending === null ? null : JSON.stringify(sending);
  await transaction.execute({
    sql: 'INSERT INTO asks (session_id, client_id, digest, command_id, said, asked_position) VALUES (?, ?, ?, ?, ?, ?)',
    args: [key.sessionId, key.clientId, key.digest, commandId, said, await transaction.position()],
  });
}

export interface WritableSession {
  id: string;
  agentId: string;
  openTurnId: string | null;
  pendingRequests: readonly AnswerableRequest[];
  /** True if `pendingRequests` may lack some open requests; the session's events have them all. */
  hasMorePending: boolean;
  /** Predicted delivery of a message that is sent now. */
  sending: Sending;
  hasRunner: boolean;
}

const MEMORY = shapeOf(sessions, 'memory');

/**
 * @throws AppError `not_found`; `conflict` (`session_ended`) if the session's agent has ended and no runner has
 * connected since
 */
async function writableSession(
  transaction: WriteTransaction,
  sessionId: string,
  now: number,
): Promise<WritableSession> {
  const id = columnText(sessionId);
  const [found, agents] = await transaction.batch([
    { sql: 'SELECT * FROM sessions WHERE id = ?', args: [id] },
    { sql: 'SELECT * FROM agents WHERE id = (SELECT agent_id FROM sessions WHERE id = ?)', args: [id] },
  ]);
  const row = found?.rows[0];
  if (row === undefined) throw notFound('session', sessionId, '/sessions');
  const session = sessionNow(sessionFromRow(row), now);
  const agent = agents?.rows[0] ? agentFromRow(agents.rows[0]) : null;
  const sending = sendingTo(session, agent);
  if (sending.kind === 'refused') throw conflict('session_ended', sending.reason);
  const { pendingRequests = [], hasMorePending = false } = storedFold(MEMORY.read(row).memory);
  const { agentId, openTurnId } = session;
  const hasRunner = agent?.connection === 'connected';
  transaction.touch(`agent:${agentId}`);
  return { id: session.id, agentId, openTurnId, sending, hasRunner, pendingRequests, hasMorePending };
}

/** @throws AppError `not_found` */
export async function requireSession(reader: Pick<Reader, 'execute'>, sessionId: string): Promise<SessionSummary> {
  const sql = `SELECT ${SESSION_ROW.columns()} FROM sessions WHERE id = ?`;
  const { rows } = await reader.execute({ sql, args: [columnText(sessionId)] });
  if (rows[0] === undefined) throw notFound('session', sessionId, '/sessions');
  return sessionFromRow(rows[0]);
}

/** @throws AppError `not_found` */
export async function requireAgent(reader: Pick<Reader, 'execute'>, agentId: string): Promise<AgentSummary> {
  const sql = `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`;
  const { rows } = await reader.execute({ sql, args: [columnText(agentId)] });
  if (rows[0] === undefined) throw notFound('agent', agentId, '/agents');
  return agentFromRow(rows[0]);
}

/** @param reason for programs, in the error's details */
export function conflict(reason: string, message: string, details: Record<string, unknown> = {}): AppError {
  return new AppError('conflict', message, { details: { reason, ...details } });
}
