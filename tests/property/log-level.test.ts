import type { Command } from '@interlude/protocol/commands';
import { COMMAND_EXPIRY_MS, COMMAND_LEASE_MS } from '@interlude/protocol/limits';
import type { AgentLogLevel } from '@interlude/protocol/read-models';
import type { CommandFrame } from '@interlude/protocol/sse';
import type { LogLevel } from '@interlude/protocol/vocabulary';
import { LevelSwitch, PersistentLevel } from '@interlude/runner/logger/level-switch';
import type { Outbox } from '@interlude/runner/outbox/outbox';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { readLogLevel } from '@/lib/server/queries/read-logs';
import { callRoute } from '../support/call-route';
import { FrameReader } from '../support/frames';
import { type InProcessTarget, ingest, inProcessTarget, marker } from '../support/ingest-target';

/**
 * Whatever is cut off, restarted or waited out: once everything works again the runner writes at the level that was
 * asked last, if its time is not over, and nothing was ever taken up behind what superseded it.
 */
const AGENT = 'a1';

let world: World | null = null;
afterEach(() => world?.close());

interface Wish {
  requestId: string;
  level: LogLevel | null;
  expiresAt: number | null;
}

/** A server, a runner with its switch on a disk, and the clock both live by. */
class World {
  readonly wishes: Wish[] = [];
  /** Which wishes the runner took up, by their place among all, in the order in which it did. */
  readonly takenUp: number[] = [];
  readonly #target: InProcessTarget;
  readonly #clock: { now: number };
  readonly #disk = new Map<string, string>();
  readonly #seen = new Set<string>();
  readonly #timers = new Set<() => void>();
  #level!: LevelSwitch;
  #kept!: PersistentLevel;
  #position: string | null = null;
  #process = 0;
  #reader: FrameReader | null = null;
  #read = 0;
  losesAcks = false;
  /** Its disk is full: it does nothing it could not remember, and is sent it again later. */
  isFull = false;

  static async open(): Promise<World> {
    const clock = { now: 1_000_000 };
    const target = await inProcessTarget(() => clock.now);
    await ingest(target, [marker(1, { agentId: AGENT })]);
    const opened = new World(target, clock);
    await opened.#start();
    return opened;
  }

  constructor(target: InProcessTarget, clock: { now: number }) {
    this.#target = target;
    this.#clock = clock;
  }

  get written(): LogLevel {
    return this.#level.get();
  }

  get wanted(): LogLevel {
    const newest = this.wishes.at(-1);
    const isOver = newest?.expiresAt != null && newest.expiresAt <= this.#clock.now;
    return (isOver ? null : newest?.level) ?? 'info';
  }

  async asked(): Promise<AgentLogLevel['desired']> {
    return (await readLogLevel(unscoped(this.#target.database), AGENT))?.desired ?? null;
  }

  async ask(level: LogLevel | null, ttlSeconds: number | null): Promise<void> {
    const response = await callRoute(this.#target.context, 'PUT', `/agents/${AGENT}/log-level`, {
      body: { level, ttlSeconds },
    });
    expect(response.status).toBe(202);
    const { commandId, desired } = await response.json();
    this.wishes.push({ requestId: commandId, level, expiresAt: desired.expiresAt });
    await this.work();
  }

  async connect(): Promise<void> {
    const query = `?runner=process-${this.#process}&startedAt=${this.#process}`;
    const headers = this.#position === null ? undefined : { 'last-event-id': this.#position };
    const response = await callRoute(this.#target.context, 'GET', `/agents/${AGENT}/commands${query}`, { headers });
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
    this.#level.close();
    this.#process += 1;
    await this.#start();
  }

  async restartServer(): Promise<void> {
    this.#target.context.commands.close();
    this.#reader = null;
    await this.#target.restart();
  }

  async pass(ms: number): Promise<void> {
    // what is in its hands by now was sent in time
    await this.work();
    this.#clock.now += ms;
    for (const run of [...this.#timers]) run();
    // what the poll does every second of the real clock
    await this.#target.context.commands.sweep();
    this.#target.context.commands.wake(AGENT);
    await this.work();
  }

  /** Does what has come, as long as more comes. */
  async work(): Promise<void> {
    await this.#target.database.writes.run(async () => {});
    const frames = this.#frames();
    while (this.#read < frames.length) {
      const frame = frames[this.#read] as CommandFrame;
      this.#read += 1;
      if (frame.event !== 'command' || this.isFull) continue;
      this.#position = frame.id ?? null;
      await this.#take(frame.data as Extract<Command, { type: 'log-level.set' }>);
    }
  }

  /** Everything works again, for as long as it takes. */
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
    this.#target.context.commands.close();
    await this.#target.close();
  }

  async #start(): Promise<void> {
    this.#timers.clear();
    this.#level = new LevelSwitch(undefined, {
      now: () => this.#clock.now,
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

  async #take({ id, body }: Extract<Command, { type: 'log-level.set' }>): Promise<void> {
    if (!this.#seen.has(id)) {
      this.#seen.add(id);
      if (this.#level.memory.requestId !== body.requestId) {
        this.takenUp.push(this.#placeOf(body));
      }
      await this.#kept.obey(body);
    }
    if (this.losesAcks) return;
    const response = await callRoute(this.#target.context, 'POST', `/agents/${AGENT}/commands/${id}/ack`, {
      body: { state: 'done' },
    });
    expect(response.status).toBe(200);
  }

  /** Among all wishes; that the time of one is over stands right behind it. */
  #placeOf({ by, requestId }: Extract<Command, { type: 'log-level.set' }>['body']): number {
    const at = this.wishes.findIndex((wish) => wish.requestId === requestId);
    if (at >= 0) return at;
    const isOver = ({ expiresAt }: Wish) => expiresAt !== null && expiresAt <= this.#clock.now;
    // The answer to the newest wish may not have come yet when its command has.
    return by === 'time-limit' ? this.wishes.findLastIndex(isOver) + 0.5 : this.wishes.length;
  }

  #frames(): CommandFrame[] {
    return (this.#reader?.frames ?? []) as unknown as CommandFrame[];
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
        name: `acks are ${loses ? 'lost' : 'taken'}`,
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

describe('the level that is asked of a runner', () => {
  it('is the one it writes in the end, and none is taken up behind the one that superseded it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        world = await World.open();
        for (const { run } of steps) await run(world);
        await world.heal();
        expect(world.takenUp).toEqual([...world.takenUp].sort((a, b) => a - b));
        expect(world.written).toBe(world.wanted);
        const asked = await world.asked();
        if (asked !== null) expect(asked).toMatchObject({ level: world.wanted, state: 'confirmed' });
        else expect(world.wanted).toBe('info');
        await world.close();
        world = null;
      }),
      { numRuns: 40 },
    );
  });
});
