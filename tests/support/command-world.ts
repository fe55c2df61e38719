import type { Command } from '@interlude/protocol/commands';
import { COMMAND_LEASE_MS } from '@interlude/protocol/limits';
import type { CommandFrame } from '@interlude/protocol/sse';
import { expect } from 'vitest';
import { callRoute } from './call-route';
import { FrameReader } from './frames';
import type { InProcessTarget } from './ingest-target';

/** A server, one runner's command stream, and their shared clock. Subclasses act on the commands. */
export abstract class CommandWorld {
  losesAcks = false;
  /** Disk full: the runner rejects what it can't persist; the server resends it later. */
  isFull = false;
  protected readonly target: InProcessTarget;
  protected readonly clock: { now: number };
  readonly #agentId: string;
  /** The runner's position on disk; survives its process. */
  #position: string | null = null;
  #process = 0;
  #reader: FrameReader | null = null;
  #read = 0;

  constructor(target: InProcessTarget, clock: { now: number }, agentId: string) {
    this.target = target;
    this.clock = clock;
    this.#agentId = agentId;
  }

  protected abstract take(command: Command): Promise<void>;

  /** Connects the runner. `remembers`: resumes from the position on disk. */
  async connect(remembers = true): Promise<void> {
    const query = `?runner=process-${this.#process}&startedAt=${this.#process}`;
    const headers = remembers && this.#position !== null ? { 'last-event-id': this.#position } : undefined;
    const response = await callRoute(this.target.context, 'GET', `/agents/${this.#agentId}/commands${query}`, {
      headers,
    });
    this.#reader = new FrameReader(response.body as ReadableStream<Uint8Array>);
    this.#read = 0;
    await this.#reader.until(() => this.#frames().some(({ event }) => event === 'up-to-date'));
    await this.work();
  }

  async drop(): Promise<void> {
    await this.#reader?.cancel();
    this.#reader = null;
  }

  async restartRunner(): Promise<void> {
    await this.drop();
    this.#process += 1;
  }

  async restartServer(): Promise<void> {
    this.target.context.commands.close();
    this.#reader = null;
    await this.target.restart();
  }

  async pass(ms: number): Promise<void> {
    this.clock.now += ms;
    // done by the poll every real second
    await this.target.context.commands.sweep();
    this.target.context.commands.wake(this.#agentId);
    await this.work();
  }

  /** Takes commands until none is left. */
  async work(): Promise<void> {
    await this.target.database.writes.run(async () => {});
    const frames = this.#frames();
    while (this.#read < frames.length) {
      const frame = frames[this.#read] as CommandFrame;
      this.#read += 1;
      if (frame.event !== 'command' || this.isFull) continue;
      this.#position = frame.id ?? null;
      await this.take(frame.data);
    }
  }

  /** Restores everything and waits until all work is done. */
  async heal(): Promise<void> {
    this.losesAcks = false;
    this.isFull = false;
    await this.drop();
    await this.pass(COMMAND_LEASE_MS + 1);
    await this.connect();
    await this.pass(COMMAND_LEASE_MS + 1);
    await this.#reader?.until(() => true);
    await this.work();
  }

  async close(): Promise<void> {
    await this.drop();
    this.target.context.commands.close();
    await this.target.close();
  }

  protected async acknowledge(commandId: string, state: 'delivered' | 'done' | 'failed' | undefined): Promise<void> {
    if (this.losesAcks) return;
    const path = `/agents/${this.#agentId}/commands/${commandId}/ack`;
    const response = await callRoute(this.target.context, 'POST', path, { body: { state } });
    expect(response.status).toBe(200);
  }

  #frames(): CommandFrame[] {
    return (this.#reader?.frames ?? []) as unknown as CommandFrame[];
  }
}
