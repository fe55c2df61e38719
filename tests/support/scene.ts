import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { audit } from './audit';
import type { LiveServer } from './live-server';
import { sessionsOf, stepOf } from './numbered-work';
import { type Random, seededRandom } from './random';
import { tempDir } from './temp-dir';
import { withDeadline } from './timeouts';
import { startBundled } from './typescript-programs';
import { Watcher } from './watcher';

/** A server under load: runner processes with numbered work and outboxes, and a watching dashboard. */
export interface Scene {
  server: LiveServer;
  random: Random;
  runners: WorkRunner[];
  watcher: Watcher;
}

export async function startScene(name: string, server: LiveServer, agentIds: string[]): Promise<Scene> {
  const [scene] = await startScenes(name, [server], agentIds);
  return scene as Scene;
}

/**
 * The same with several servers on one database. A dashboard watches each, and the runners are spread over the servers.
 */
export async function startScenes(name: string, servers: LiveServer[], agentIds: string[]): Promise<Scene[]> {
  const random = seededRandom(name);
  const folder = await tempDir();
  const topics = agentIds.flatMap((id) => [`logs:${id}`, ...sessionsOf(id).map((session) => `session:${session}`)]);
  const runners = agentIds.map(
    (agentId, index) => new WorkRunner(agentId, folder, servers[index % servers.length] as LiveServer),
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

/** Resolves once a record has been stored and an event seen since the call. */
export async function untilUnderLoad({ runners, watcher }: Scene): Promise<void> {
  const seen = watcher.events.length;
  const stored = Promise.any(runners.map((runner) => runner.progress()));
  const standing = () => [watcher, ...runners].map((one) => one.standing()).join('; ');
  await withDeadline(standing, Promise.all([stored, watcher.until(() => watcher.events.length > seen)]));
}

/** Finishes the runners' work and verifies that it arrived once and in order everywhere. */
export async function verifyDelivery(...scenes: Scene[]): Promise<void> {
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

/** Minimum records before a runner's work can be verified: some steps in each session. */
const FEWEST_RECORDS = [1, 2, 3, 4].reduce((sum, n) => sum + stepOf('any', n).records.length, 0);

/** A runner process with numbered work, restarted after each kill. */
class WorkRunner {
  readonly agentId: string;
  readonly #start: () => ChildProcess;
  #child: ChildProcess;
  #acknowledged = 0;
  /** The outbox's last reported state. */
  #outbox = 'has not spoken yet';
  #steps: number | null = null;
  #finishing = false;
  #failure: Error | null = null;
  readonly #watchers = new Set<() => void>();

  constructor(agentId: string, folder: string, server: { url: string; token: string }) {
    this.agentId = agentId;
    const args = [agentId, join(folder, `${agentId}.db`), server.url];
    const env = { ...process.env, RUNNER_TOKEN: server.token };
    this.#start = () =>
      startBundled('tests/support/work-runner.ts', args, { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child = this.#launch();
  }

  /** Resolves once the server has acknowledged another record. */
  async progress(): Promise<void> {
    const before = this.#acknowledged;
    await this.#until(() => this.#acknowledged > before);
  }

  /** Tells the runner to retry now. */
  kick(): void {
    if (this.#child.connected) this.#child.send('kick');
  }

  standing(): string {
    return `the runner ${this.agentId} has acknowledged ${this.#acknowledged}; its outbox: ${this.#outbox}`;
  }

  /** Sends SIGKILL and restarts. */
  async kill9(): Promise<void> {
    const child = this.#child;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    this.#child = this.#launch();
  }

  /** @returns the number of completed steps in both sessions, once all records are acknowledged */
  async finish(): Promise<number> {
    await this.#until(() => this.#acknowledged >= FEWEST_RECORDS);
    this.#finishing = true;
    this.#child.send('finish');
    await this.#until(() => this.#steps !== null);
    return this.#steps ?? 0;
  }

  /** Kills the runner. */
  end(): void {
    this.#child.removeAllListeners('exit');
    this.#child.kill('SIGKILL');
  }

  #launch(): ChildProcess {
    const child = this.#start();
    child.on('message', (message: { acknowledged?: number; steps?: number; outbox?: string }) => {
      this.#outbox = message.outbox ?? this.#outbox;
      this.#acknowledged = message.acknowledged ?? this.#acknowledged;
      this.#steps = message.steps ?? this.#steps;
      this.#notify();
    });
    child.once('exit', (code, signal) => {
      if (signal === 'SIGKILL' || (code === 0 && this.#finishing)) return;
      this.#failure = new Error(`the runner ${this.agentId} exited unexpectedly (${signal ?? code})`);
      this.#notify();
    });
    return child;
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#failure) throw this.#failure;
      const changed = new Promise<void>((resolve) => this.#watchers.add(resolve));
      await withDeadline(() => this.standing(), changed);
    }
  }

  #notify(): void {
    for (const notify of this.#watchers) notify();
    this.#watchers.clear();
  }
}
