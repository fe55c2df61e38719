import { EventWriter } from './event-writer';
import { live } from './transcript-page';
import { userTurn } from './turn-events';
import type { Visit } from './visit';
import { WireRunner } from './wire-runner';

/** An agent between two turns, its runner connected, and the page of its session, live. `close` leaves the page. */
export async function idleAgent(it: Visit, name: string, status: object | null = null) {
  const agent = new EventWriter(it.server, name);
  const sessionId = `${name}-session`;
  await agent.write(sessionId, userTurn('first', 'Begin', 'Begun'));
  if (status !== null) await agent.status(sessionId, status);
  const runner = await WireRunner.connect(it.server, name);
  const page = await it.open(`/sessions/${sessionId}`);
  await live(page);
  const composer = page.getByRole('textbox', { name: `Message to “${name}”` });
  await composer.waitFor();
  const close = async () => {
    await it.leave(page);
    runner.leave();
  };
  return { agent, runner, page, sessionId, composer, close };
}
