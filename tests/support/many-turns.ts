import { EventWriter } from './event-writer';
import { userTurn } from './turn-events';

/** A session of finished turns `r0`, `r1`, … of many heights, whose agent has the session's name. */
export async function writeManyTurns(
  server: { url: string; token: string },
  session: string,
  count: number,
): Promise<void> {
  const turns = Array.from({ length: count }, (_, at) =>
    userTurn(`r${at}`, `Question ${at}`, `Answer ${at}. ${'It takes some words. '.repeat((at * 7) % 40)}`),
  );
  await new EventWriter(server, session).write(session, turns.flat(), { stepMs: 40 });
}
