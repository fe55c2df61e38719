import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { audit } from './audit';
import type { LiveServer } from './live-server';
import { sessionsOf } from './numbered-work';
import { type Random, seededRandom } from './random';
import { WorkRunner } from './runner-process';
import { tempDir } from './temp-dir';
import { Watcher } from './watcher';

/** A server under load: runners at numbered work, each a process with an outbox, and a dashboard that watches them. */
export interface Scene {
  server: LiveServer;
  random: Random;
  runners: WorkRunner[];
  watcher: Watcher;
}

export async function setUp(name: string, server: LiveServer, agentIds: string[]): Promise<Scene> {
  const random = seededRandom(name);
  const folder = await tempDir();
  const topics = agentIds.flatMap((id) => [`logs:${id}`, ...sessionsOf(id).map((session) => `session:${session}`)]);
  const watcher = new Watcher(server, ['fleet', ...topics]);
  const runners = agentIds.map((agentId) => new WorkRunner(agentId, folder, server));
  onTestFinished(() => {
    watcher.close();
    for (const runner of runners) runner.end();
  });
  return { server, random, runners, watcher };
}

/** Resolves when something was stored, and something of it was seen, since the call. */
export async function untilUnderLoad({ runners, watcher }: Scene): Promise<void> {
  const seen = watcher.events.length;
  const stored = Promise.any(runners.map((runner) => runner.progress()));
  await Promise.all([stored, watcher.until(() => watcher.events.length > seen)]);
}

/** Lets the runners end their work, and looks everywhere whether it arrived once and in order. */
export async function judge({ server, runners, watcher }: Scene): Promise<void> {
  const steps = new Map<string, number>();
  await Promise.all(runners.map(async (runner) => steps.set(runner.agentId, await runner.finish())));
  const seen = `${watcher.events.length} events over ${watcher.connections} connections`;
  process.stdout.write(`steps done: ${JSON.stringify(Object.fromEntries(steps))}; seen: ${seen}\n`);
  const databaseFile = join(server.dataDir, 'interlude.db');
  await audit({ url: server.url, token: server.token, databaseFile, steps, watcher });
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
