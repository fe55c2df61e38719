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
  const [scene] = await setUpBeside(name, [server], agentIds);
  return scene as Scene;
}

/** The same with several servers of one database: a dashboard watches each, and the runners write to one after the other. */
export async function setUpBeside(name: string, servers: LiveServer[], agentIds: string[]): Promise<Scene[]> {
  const random = seededRandom(name);
  const folder = await tempDir();
  const topics = agentIds.flatMap((id) => [`logs:${id}`, ...sessionsOf(id).map((session) => `session:${session}`)]);
  const runners = agentIds.map(
    (agentId, at) => new WorkRunner(agentId, folder, servers[at % servers.length] as LiveServer),
  );
  const scenes = servers.map((server) => ({
    ...{ server, random, runners },
    watcher: new Watcher(server, ['fleet', ...topics]),
  }));
  onTestFinished(() => {
    for (const { watcher } of scenes) watcher.close();
    for (const runner of runners) runner.end();
  });
  return scenes;
}

/** Resolves when something was stored, and something of it was seen, since the call. */
export async function untilUnderLoad({ runners, watcher }: Scene): Promise<void> {
  const seen = watcher.events.length;
  const stored = Promise.any(runners.map((runner) => runner.progress()));
  await Promise.all([stored, watcher.until(() => watcher.events.length > seen)]);
}

/** Lets the runners end their work, and looks everywhere whether it arrived once and in order. */
export async function judge(...scenes: Scene[]): Promise<void> {
  const steps = new Map<string, number>();
  const runners = scenes[0]?.runners ?? [];
  await Promise.all(runners.map(async (runner) => steps.set(runner.agentId, await runner.finish())));
  for (const { server, watcher } of scenes) {
    const seen = `${watcher.events.length} events over ${watcher.connections} connections`;
    process.stdout.write(`steps done: ${JSON.stringify(Object.fromEntries(steps))}; seen: ${seen}\n`);
    await audit({ ...server, steps, watcher });
  }
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
