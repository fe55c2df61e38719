import { EventWriter } from './event-writer';
import { live } from './transcript-page';
import { userTurn } from './turn-events';
import type { Visit } from './visit';
import { turnOf, WireRunner } from './wire-runner';

/** An agent in the middle of a turn, its runner connected, and the page of its session, live. `close` leaves the page. */
export async function agentAtWork(it: Visit, name: string) {
  const agent = new EventWriter(it.server, name);
  const sessionId = `${name}-session`;
  await agent.write(sessionId, [...userTurn('first', 'Begin', 'Begun'), turnOf('RUN_STARTED', 'second', [])]);
  const runner = await WireRunner.connect(it.server, name);
  const page = await it.open(`/sessions/${sessionId}`);
  await live(page);
  await page.getByRole('textbox', { name: /^Message to/ }).waitFor();
  const close = async () => {
    await it.leave(page);
    runner.leave();
  };
  return { agent, runner, page, sessionId, close };
}
