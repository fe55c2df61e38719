import type { Command } from '@interlude/protocol/commands';
import { COMMAND_LEASE_MS, MESSAGE_EXPIRY_MS } from '@interlude/protocol/limits';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { callRoute } from '../support/call-route';
import { CommandWorld } from '../support/command-world';
import { type InProcessTarget, ingest, inProcessTarget, marker } from '../support/ingest-target';

/**
 * With disconnects, restarts and waits at any time, a runner that remembers its commands acts exactly once on every
 * command accepted with 202.
 */
const AGENT = 'a1';
const SESSION = 's1';

let world: World | null = null;
afterEach(() => world?.close());

/** A server, a runner with persistent memory, and their shared clock. */
class World extends CommandWorld {
  readonly acted: string[] = [];
  readonly accepted: string[] = [];
  /** The runner's state on disk; survives its process. */
  readonly #seen = new Set<string>();

  static async open(): Promise<World> {
    const clock = { now: 1_000_000 };
    const target = await inProcessTarget(() => clock.now);
    await ingest(target, [marker(1, { agentId: AGENT, sessionId: SESSION })]);
    return new World(target, clock);
  }

  constructor(target: InProcessTarget, clock: { now: number }) {
    super(target, clock, AGENT);
  }

  async ask(clientId: string): Promise<void> {
    const response = await callRoute(this.target.context, 'POST', `/sessions/${SESSION}/messages`, {
      body: { text: 'Hello', clientId },
    });
    expect(response.status).toBe(202);
    const { messageId } = (await response.json()) as { messageId: string };
    if (!this.accepted.includes(messageId)) this.accepted.push(messageId);
  }

  async states(): Promise<Record<string, unknown>> {
    const { rows } = await this.target.database.reader.execute('SELECT id, state FROM commands');
    return Object.fromEntries(rows.map((row) => [String(row.id), row.state]));
  }

  /** Delivery states in the transcript. */
  async shown(): Promise<unknown[]> {
    const { rows } = await this.target.database.reader.execute(
      `SELECT payload->'$.value' AS value FROM events WHERE payload->>'$.name' = 'message:delivery' ORDER BY position`,
    );
    return rows.map((row) => JSON.parse(String(row.value)));
  }

  protected override async take(command: Command): Promise<void> {
    if (!this.#seen.has(command.id)) {
      this.#seen.add(command.id);
      this.acted.push(command.id);
    }
    await this.acknowledge(command.id, 'delivered');
  }
}

type Step = (world: World) => Promise<void>;

const step: fc.Arbitrary<{ name: string; run: Step }> = fc.oneof(
  { weight: 4, arbitrary: fc.nat(12).map((n) => ({ name: `ask ${n}`, run: (w: World) => w.ask(`c${n}`) })) },
  {
    weight: 3,
    arbitrary: fc
      .boolean()
      .map((remembers) => ({ name: `connect ${remembers}`, run: (w: World) => w.connect(remembers) })),
  },
  { weight: 2, arbitrary: fc.constant({ name: 'drop', run: (w: World) => w.drop() }) },
  { weight: 2, arbitrary: fc.constant({ name: 'restart the runner', run: (w: World) => w.restartRunner() }) },
  { weight: 1, arbitrary: fc.constant({ name: 'restart the server', run: (w: World) => w.restartServer() }) },
  { weight: 2, arbitrary: fc.constant({ name: 'work', run: (w: World) => w.work() }) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(1_000, COMMAND_LEASE_MS + 1)
      .map((ms) => ({ name: `pass ${ms} ms`, run: (w: World) => w.pass(ms) })),
  },
  {
    weight: 2,
    arbitrary: fc.boolean().map((loses) => ({
      name: `acks are ${loses ? 'lost' : 'delivered'}`,
      run: async (w: World) => {
        w.losesAcks = loses;
      },
    })),
  },
);

describe('commands', () => {
  it('take effect exactly once with disconnects, restarts and waits at any time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        world = await World.open();
        for (const { run } of steps) await run(world);
        await world.heal();
        expect([...world.acted].sort()).toEqual([...world.accepted].sort());
        expect(await world.states()).toEqual(Object.fromEntries(world.accepted.map((id) => [id, 'delivered'])));
        const delivered = world.accepted.map((message_id) => ({ message_id, delivery: 'delivered' }));
        expect(new Set(await world.shown())).toEqual(new Set(delivered));
        expect(await world.shown()).toHaveLength(delivered.length);
        await world.close();
        world = null;
      }),
      { numRuns: 40 },
    );
  });

  it('expire visibly and are not sent when no runner receives them in time', async () => {
    world = await World.open();
    // with an advanced clock
    await world.pass(1);
    await world.ask('c1');
    await world.pass(MESSAGE_EXPIRY_MS + 1);
    expect(await world.shown()).toEqual([
      { message_id: world.accepted[0], delivery: 'failed', reason: 'no runner received it within 7 days' },
    ]);
    await world.connect(false);
    expect(world.acted).toEqual([]);
    expect(Object.values(await world.states())).toEqual(['expired']);
  });

  it('do not expire once delivered', async () => {
    world = await World.open();
    await world.connect(false);
    await world.ask('c1');
    await world.heal();
    await world.pass(MESSAGE_EXPIRY_MS + 1);
    expect(await world.shown()).toEqual([{ message_id: world.accepted[0], delivery: 'delivered' }]);
  });
});
