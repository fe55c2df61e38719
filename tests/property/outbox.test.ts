import { copyFileSync, existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Outbox, type OutgoingRecord } from '@interlude/runner/outbox/outbox';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { InstantClock } from '../support/clocks';
import { type Fault, FaultServer, refusal } from '../support/fault-server';

type Step =
  | { do: 'enqueue'; count: number; wait: boolean }
  | { do: 'fault'; fault: Fault }
  /** Kills the process: files keep their current state, and requests in flight may still arrive. */
  | { do: 'kill' }
  | { do: 'restart' }
  | { do: 'outage' }
  | { do: 'breathe' };

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constantFrom<Fault>(
    { kind: 'reset' },
    { kind: 'taken-then-reset' },
    { kind: 'taken-then-half-an-answer' },
    { kind: 'answer', ...refusal(401, 'unauthenticated', {}) },
    { kind: 'answer', status: 429, headers: { 'retry-after': '2' } },
  ),
  fc.constantFrom(500, 502, 503, 504, 404, 302).map((status): Fault => ({ kind: 'answer', status })),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('enqueue' as const), count: fc.nat(12), wait: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('fault' as const), fault }) },
  { weight: 3, arbitrary: fc.constantFrom<Step>({ do: 'kill' }, { do: 'restart' }, { do: 'outage' }) },
  { weight: 3, arbitrary: fc.constant<Step>({ do: 'breathe' }) },
);

const settings = fc.record({
  steps: fc.array(step, { minLength: 3, maxLength: 30 }),
  maxBatchRows: fc.constantFrom(1, 2, 7, 500),
});

test('the outbox delivers each record once and in order through failures, kills and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(settings, async ({ steps, maxBatchRows }) => {
      const world = await World.open(maxBatchRows);
      try {
        for (const each of steps) await world.step(each);
        const { arrived, accepted, lost } = await world.end();
        expect(arrived).toEqual([...new Set(arrived)].sort((a, b) => a - b));
        expect(accepted.filter((number) => !arrived.includes(number))).toEqual([]);
        expect(lost).toBe(0);
      } finally {
        await world.close();
      }
    }),
    { numRuns: 60 },
  );
});

/** A producer, its server, and a disk that survives kills. */
class World {
  readonly #server: FaultServer;
  readonly #folder: string;
  readonly #maxBatchRows: number;
  readonly #clock = new InstantClock();
  /** Numbers whose `enqueue` resolved before a kill. */
  readonly #accepted: number[] = [];
  readonly #dead: Outbox[] = [];
  #outbox!: Outbox;
  #life = 0;
  #next = 1;

  private constructor(server: FaultServer, folder: string, maxBatchRows: number) {
    this.#server = server;
    this.#folder = folder;
    this.#maxBatchRows = maxBatchRows;
  }

  static async open(maxBatchRows: number): Promise<World> {
    const folder = await mkdtemp(join(tmpdir(), 'interlude-test-'));
    const world = new World(await FaultServer.start(), folder, maxBatchRows);
    await world.#start();
    return world;
  }

  async step(step: Step): Promise<void> {
    if (step.do === 'enqueue') await this.#enqueue(step.count, step.wait);
    if (step.do === 'fault') this.#server.script(step.fault);
    if (step.do === 'kill') await this.#kill();
    if (step.do === 'restart') {
      await this.#outbox.stop();
      await this.#start();
    }
    if (step.do === 'outage') {
      await this.#server.close();
      await breathe();
      await this.#server.listen();
    }
    if (step.do === 'breathe') await breathe();
  }

  async end(): Promise<{ arrived: number[]; accepted: number[]; lost: number }> {
    await this.#outbox.idle();
    const { messages, lost } = this.#server.ledger;
    return { arrived: messages.map(Number), accepted: this.#accepted, lost };
  }

  async close(): Promise<void> {
    await this.#outbox.stop();
    for (const outbox of this.#dead) await outbox.stop();
    await this.#server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #start(): Promise<void> {
    const life = this.#life;
    this.#outbox = await Outbox.open(this.#file(), {
      producerId: 'producer-1',
      agentId: 'agent-1',
      clock: this.#clock,
      maxBatchRows: this.#maxBatchRows,
      endpoint: async () => {
        // a dead process sends nothing new
        if (life !== this.#life) throw new Error('this process was killed');
        return { url: this.#server.url, token: undefined };
      },
    });
  }

  async #enqueue(count: number, wait: boolean): Promise<void> {
    const life = this.#life;
    const numbers = Array.from({ length: count }, () => this.#next++);
    const stored = this.#outbox.enqueue(numbers.map(record)).then(() => {
      if (life === this.#life) this.#accepted.push(...numbers);
    });
    if (wait) await stored;
  }

  async #kill(): Promise<void> {
    const [from, dead] = [this.#file(), this.#outbox];
    this.#life += 1;
    for (const suffix of ['', '-wal'])
      if (existsSync(from + suffix)) copyFileSync(from + suffix, this.#file() + suffix);
    this.#dead.push(dead);
    await this.#start();
  }

  #file(): string {
    return join(this.#folder, `life-${this.#life}.db`);
  }
}

function record(number: number): OutgoingRecord {
  const log = { level: 'info', component: 'test', message: String(number) } as const;
  return { kind: 'log', agentId: 'agent-1', occurredAt: 1_795_000_000_000, log };
}

/** Waits a few turns of the event loop, so that requests and commits progress without completing. */
async function breathe(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
