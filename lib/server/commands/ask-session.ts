import type { Command, CommandAnswer, CommandBodies, CommandType } from '@interlude/protocol/commands';
import type { WriteTransaction } from '@/db/writes';
import { Yielder } from '@/db/yield-to-loop';
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
   * `said`: what else its sender is told, now and whenever the same is asked again.
   */
  prepare: (
    transaction: WriteTransaction,
    session: WritableSession,
    commandId: string,
  ) => Promise<{
    body: CommandBodies[Type];
    repeats?: (earlier: CommandBodies[Type]) => boolean;
    said?: object;
  }>;
}

/** The command, and what else was said of it when it was asked for. */
export interface SessionAnswer extends CommandAnswer {
  said: object | null;
}

/**
 * Asks something of a session's agent.
 * @returns once the command is on disk; the same again for the same `clientId`
 */
export async function askSession<Type extends CommandType>(
  server: CommandServer,
  ask: SessionAsk<Type>,
): Promise<CommandAnswer> {
  const { commandId, state } = await askAndSay(server, ask);
  return { commandId, state };
}

/** The same with what is said of it. @see askSession */
export async function askAndSay<Type extends CommandType>(
  server: CommandServer,
  { sessionId, clientId, ask, bytes, prepare }: SessionAsk<Type>,
): Promise<SessionAnswer> {
  const now = server.now();
  const pace = new Yielder();
  const named = namedAsk(sessionId, clientId, ask);
  await pace.rest();
  const { agentId, answer } = await server.database.writes.run(
    async (transaction) => {
      const before = await askedBefore(transaction, named);
      if (before !== null && before.command !== null) {
        const { agentId, command, state } = before.command;
        return { agentId, answer: answerOf(command, state, before.said) };
      }
      const session = await writableSession(transaction, sessionId, now);
      const { agentId } = session;
      const id = crypto.randomUUID();
      const { body, repeats, said = null } = await prepare(transaction, session, id);
      const pending = repeats && (await findEffective(transaction, agentId, session.id, ask.type, repeats));
      if (pending) {
        await noteAsk(transaction, named, pending.command.id, said);
        return { agentId, answer: answerOf(pending.command, pending.state, said) };
      }
      const waits = !session.hasRunner;
      const fields = { id, agentId, sessionId: session.id, clientId, waits, now };
      const command = await queueCommand(transaction, { ...fields, type: ask.type, body });
      await noteAsk(transaction, named, command.id, said);
      return { agentId, answer: answerOf(command, 'queued', said) };
    },
    { bytes },
  );
  server.commands.wake(agentId);
  return answer;
}

function answerOf({ id }: Command, state: CommandAnswer['state'], said: object | null): SessionAnswer {
  return { commandId: id, state, said };
}
