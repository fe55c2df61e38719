import { loadTypescript } from './typescript.mjs';

/** What is installed while the dashboard runs is offered within this time. */
const LOOK_EVERY_MS = 30_000;

/**
 * Looks for agents on this machine, now and then, and leaves what it finds where the server's pages read it. Failing to
 * look is no reason not to run: then nothing is offered.
 */
export async function keepLookingForAgents() {
  try {
    const { findAgents } = await loadTypescript('lib/runner/sources/found-agents.ts', { alone: true });
    const look = async () => {
      process.env.INTERLUDE_FOUND_AGENTS = JSON.stringify(await findAgents(process.env));
    };
    await look();
    setInterval(() => void look().catch(() => undefined), LOOK_EVERY_MS).unref();
  } catch (error) {
    process.stderr.write(`interlude: this machine could not be searched for agents: ${error}\n`);
  }
}
