import type { Command } from '@interlude/protocol/commands';
import { COMMAND_EXPIRY_MS, COMMAND_LEASE_MS } from '@interlude/protocol/limits';
import type { AgentLogLevel } from '@interlude/protocol/read-models';
import type { LogLevel } from '@interlude/protocol/vocabulary';
import { LevelSwitch, PersistentLevel } from '@interlude/runner/logger/level-switch';
import type { Outbox } from '@interlude/runner/outbox/outbox';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { readLogLevel } from '@/lib/server/queries/read-logs';
import { callRoute } from '../support/call-route';
import { CommandWorld } from '../support/command-world';
import { type InProcessTarget, ingest, inProcessTarget, marker } from '../support/ingest-target';

/**
 * With disconnects, restarts and waits at any time, the runner finally logs at the last requested, unexpired level and
 * never applies a superseded request.
 */
const AGENT = 'a1';

let world: World | null = null;
afterEach(() => world?.close());

interface LevelRequest {
  requestId: string;
  level: LogLevel | null;
  expiresAt: number | null;
}

/** A server, a runner with a persistent log level, and their shared clock. */
class World extends CommandWorld {
  readonly requests: LevelRequest[] = [];
  /** Indexes of requests applied by the runner, in order. */
  readonly takenUp: number[] = [];
  readonly #disk = new Map<string, string>();
  readonly #seen = new Set<string>();
  readonly #timers = new Set<() => void>();
  #level!: LevelSwitch;
  #kept!: PersistentLevel;

  static async open(): Promise<World> {
    const clock = { now: 1_000_000 };
    const target = await inProcessTarget(() => clock.now);
    await ingest(target, [marker(1, { agentId: AGENT })]);
    const opened = new World(target, clock);
    await opened.#start();
    return opened;
  }

  constructor(target: InProcessTarget, clock: { now: number }) {
    super(target, clock, AGENT);
  }

  get written(): LogLevel {
    return this.#level.get();
  }

  get requested(): LogLevel {
    const newest = this.requests.at(-1);
    const isOver = newest?.expiresAt != null && newest.expiresAt <= this.clock.now;
    return (isOver ? null : newest?.level) ?? 'info';
  }

  async desired(): Promise<AgentLogLevel['desired']> {
    return (await readLogLevel(unscoped(this.target.database), AGENT))?.desired ?? null;
  }

  async ask(level: LogLevel | null, ttlSeconds: number | null): Promise<void> {
    const response = await callRoute(this.target.context, 'PUT', `/agents/${AGENT}/log-level`, {
      body: { level, ttlSeconds },
    });
    expect(response.status).toBe(202);
    const { commandId, desired } = await response.json();
    this.requests.push({ requestId: commandId, level, expiresAt: desired.expiresAt });
    await this.work();
  }

  override async restartRunner(): Promise<void> {
    await super.restartRunner();
    this.#level.close();
    await this.#start();
  }

  override async pass(ms: number): Promise<void> {
    // commands already received were sent in time
    await this.work();
    this.clock.now += ms;
    for (const run of [...this.#timers]) run();
    await super.pass(0);
  }

  async #start(): Promise<void> {
    this.#timers.clear();
    this.#level = new LevelSwitch(undefined, {
      now: () => this.clock.now,
      after: (_ms, run) => {
        const once = () => {
          this.#timers.delete(once);
          run();
        };
        this.#timers.add(once);
        return () => this.#timers.delete(once);
      },
    });
    const outbox: Pick<Outbox, 'cursor' | 'enqueue'> = {
      cursor: async (name) => this.#disk.get(name) ?? null,
      enqueue: async (_records, cursor) => {
        for (const { name, value } of [cursor ?? []].flat()) this.#disk.set(name, value ?? '');
      },
    };
    this.#kept = await PersistentLevel.restore(this.#level, outbox, () => {});
  }

  protected override async take(command: Command): Promise<void> {
    const { id, body } = command as Extract<Command, { type: 'log-level.set' }>;
    if (!this.#seen.has(id)) {
      this.#seen.add(id);
      if (this.#level.stored.requestId !== body.requestId) this.takenUp.push(this.#placeOf(body));
      await this.#kept.apply(body);
    }
    await this.acknowledge(id, 'done');
  }

  /** Index among all requests. An expiry follows its request. */
  #placeOf({ by, requestId }: Extract<Command, { type: 'log-level.set' }>['body']): number {
    const index = this.requests.findIndex((request) => request.requestId === requestId);
    if (index >= 0) return index;
    const isOver = ({ expiresAt }: LevelRequest) => expiresAt !== null && expiresAt <= this.clock.now;
    // A command may arrive before the response to its request.
    return by === 'time-limit' ? this.requests.findLastIndex(isOver) + 0.5 : this.requests.length;
  }
}

interface Step {
  name: string;
  run: (world: World) => Promise<void>;
}

const ask: fc.Arbitrary<Step> = fc
  .record({
    level: fc.constantFrom<LogLevel | null>('debug', 'warn', 'error', null),
    ttlSeconds: fc.constantFrom(null, 30, 900),
  })
  .map(({ level, ttlSeconds }) => ({
    name: `ask ${level} ${ttlSeconds}`,
    run: (w) => w.ask(level, level === null ? null : ttlSeconds),
  }));

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: ask },
  { weight: 3, arbitrary: fc.constant<Step>({ name: 'connect', run: (w) => w.connect() }) },
  { weight: 2, arbitrary: fc.constant<Step>({ name: 'drop', run: (w) => w.drop() }) },
  { weight: 2, arbitrary: fc.constant<Step>({ name: 'restart the runner', run: (w) => w.restartRunner() }) },
  { weight: 1, arbitrary: fc.constant<Step>({ name: 'restart the server', run: (w) => w.restartServer() }) },
  { weight: 2, arbitrary: fc.constant<Step>({ name: 'work', run: (w) => w.work() }) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(1_000, 31_000, COMMAND_LEASE_MS + 1, COMMAND_EXPIRY_MS + 1)
      .map((ms): Step => ({ name: `pass ${ms} ms`, run: (w) => w.pass(ms) })),
  },
  {
    weight: 2,
    arbitrary: fc.boolean().map(
      (loses): Step => ({
        name: `acks are ${loses ? 'lost' : 'delivered'}`,
        run: async (w) => {
          w.losesAcks = loses;
        },
      }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.boolean().map(
      (full): Step => ({
        name: `its disk ${full ? 'is full' : 'has room'}`,
        run: async (w) => {
          w.isFull = full;
        },
      }),
    ),
  },
);

describe('a requested log level', () => {
  it('takes effect in the end and is never applied after a newer one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        world = await World.open();
        for (const { run } of steps) await run(world);
        await world.heal();
        expect(world.takenUp).toEqual([...world.takenUp].sort((a, b) => a - b));
        expect(world.written).toBe(world.requested);
        const desired = await world.desired();
        if (desired !== null) expect(desired).toMatchObject({ level: world.requested, state: 'confirmed' });
        else expect(world.requested).toBe('info');
        await world.close();
        world = null;
      }),
      { numRuns: 40 },
    );
  });
});
