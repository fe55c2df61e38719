import { Pace } from '@/db/next-turn';
import type { WriteTransaction } from '@/db/write-queue';
import type { Command, CommandAnswer, CommandBodies, CommandType } from '@/lib/protocol/commands';
import { type Ask, askedBefore, namedAsk, noteAsk } from './asks';
import type { CommandServer } from './command-hub';
import { findEffective, queueCommand } from './queue-command';
import { type WritableSession, writableSession } from './writable-session';

export interface SessionAsk<Type extends CommandType> {
  sessionId: string;
  clientId: string | undefined;
  /** Everything that was asked, unchanged. */
  ask: Ask & { type: Type };
  /** How many bytes it holds in memory while it waits to be written. */
  bytes?: number;
  /**
   * Checks what is asked for and gives the command's body.
   * `repeats`: whether an earlier command, still on its way, asks for the same; then that one is the answer.
   */
  prepare: (
    transaction: WriteTransaction,
    session: WritableSession,
    commandId: string,
  ) => Promise<{ body: CommandBodies[Type]; repeats?: (earlier: CommandBodies[Type]) => boolean }>;
}

/**
 * Asks something of a session's agent.
 * @returns once the command is on disk; the same again for the same `clientId`
 */
export async function askSession<Type extends CommandType>(
  server: CommandServer,
  { sessionId, clientId, ask, bytes, prepare }: SessionAsk<Type>,
): Promise<CommandAnswer> {
  const now = server.now();
  const pace = new Pace();
  const named = namedAsk(sessionId, clientId, ask);
  await pace.rest();
  const { agentId, answer } = await server.database.writes.run(async (transaction) => {
    const before = (await askedBefore(transaction, named))?.command ?? null;
    if (before !== null) return { agentId: before.agentId, answer: answerOf(before.command, before.state) };
    const session = await writableSession(transaction, sessionId);
    const { agentId } = session;
    const id = crypto.randomUUID();
    const { body, repeats } = await prepare(transaction, session, id);
    const pending = repeats && (await findEffective(transaction, agentId, session.id, ask.type, repeats));
    if (pending) {
      await noteAsk(transaction, named, pending.command.id);
      return { agentId, answer: answerOf(pending.command, pending.state) };
    }
    const fields = { id, agentId, sessionId: session.id, clientId, now };
    const command = await queueCommand(transaction, { ...fields, type: ask.type, body });
    await noteAsk(transaction, named, command.id);
    return { agentId, answer: answerOf(command, 'queued') };
  }, bytes);
  server.commands.wake(agentId);
  return answer;
}

function answerOf({ id }: Command, state: CommandAnswer['state']): CommandAnswer {
  return { commandId: id, state };
}
