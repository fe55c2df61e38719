import type { Command, CommandResponse } from '@interlude/protocol/commands';
import { COMMAND_LEASE_MS } from '@interlude/protocol/limits';
import type { RequestItem, TranscriptPage } from '@interlude/protocol/read-models';
import { PermissionRequests } from '@interlude/runner/sources/claude/permission-requests';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { callRoute } from '../support/call-route';
import { CommandWorld } from '../support/command-world';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../support/ingest-target';

/**
 * An agent opens, withdraws, reopens and repeats requests under the same id with different input. People answer
 * outdated pages, repeatedly. The runner disconnects and reconnects; records and acknowledgements are late or lost.
 * Only input that somebody allowed may run.
 */
const AGENT = 'a1';
const SESSION = 's1';
const NEVER_MS = 2 ** 31 - 1;

type Behavior = 'allow' | 'deny';
interface Seen {
  digest: string;
  input: unknown;
}
interface Given extends Seen {
  id: string;
  behavior: Behavior;
}

let world: World | null = null;
afterEach(() => world?.close());

class World extends CommandWorld {
  /** Answers accepted with 202. */
  readonly given: Given[] = [];
  /** Answers that reached the agent, with the request's input at that time. */
  readonly applied: { id: string; input: unknown; digest: string | undefined; behavior: Behavior }[] = [];
  readonly #pending = new PermissionRequests(SESSION);
  readonly #held = new Map<string, object>();
  readonly #outbox: object[] = [];
  readonly #outcomes = new Map<string, 'done' | 'failed'>();
  /** The operator's latest page. */
  #page = new Map<string, Seen>();
  #seq = 0;

  static async open(): Promise<World> {
    const clock = { now: 1_000_000 };
    const opened = new World(await inProcessTarget(() => clock.now), clock);
    opened.#send('marker', {});
    await opened.flush();
    return opened;
  }

  constructor(target: InProcessTarget, clock: { now: number }) {
    super(target, clock, AGENT);
  }

  /** @param silently without resolving the previous request of this id, as other runners may */
  ask(id: string, input: object, silently: boolean): void {
    if (!silently) this.withdraw(id);
    this.#held.set(id, input);
    this.#send('request:opened', { request_id: id, tool_name: 'Bash', input });
    const context = { signal: new AbortController().signal };
    const request = { tool: 'Bash', input: input as Record<string, unknown>, context };
    void this.#pending.wait(id, request, NEVER_MS, (decision) => {
      if (this.#held.get(id) === input) this.#held.delete(id);
      if (decision.kind !== 'permission') return;
      const { behavior, digest } = decision.body;
      this.applied.push({ id, input, digest, behavior });
      this.#send('request:resolved', { request_id: id, outcome: behavior === 'allow' ? 'allowed' : 'denied' });
    });
  }

  withdraw(id: string): void {
    if (!this.#held.has(id)) return;
    this.#pending.withdraw(id);
    this.#send('request:resolved', { request_id: id, outcome: 'cancelled' });
  }

  repeat(id: string): void {
    const input = this.#held.get(id);
    if (input !== undefined) this.#send('request:opened', { request_id: id, tool_name: 'Bash', input });
  }

  async flush(): Promise<void> {
    if (this.#outbox.length > 0) await ingest(this.target, this.#outbox.splice(0));
  }

  async look(): Promise<void> {
    const response = await callRoute(this.target.context, 'GET', `/sessions/${SESSION}/transcript`);
    const { turns } = (await response.json()) as TranscriptPage;
    const open = turns
      .flatMap(({ items }) => items)
      .filter((item): item is RequestItem => item.kind === 'request' && item.outcome === null);
    this.#page = new Map(open.map(({ id, digest, input }) => [id, { digest: digest as string, input }]));
  }

  /** Answers what the page shows, however outdated. */
  async answer(id: string, behavior: Behavior, clientId: string): Promise<void> {
    const seen = this.#page.get(id);
    if (seen === undefined) return;
    const body = { behavior, digest: seen.digest, clientId };
    const response = await callRoute(this.target.context, 'POST', `/sessions/${SESSION}/requests/${id}`, { body });
    const answer = (await response.json()) as CommandResponse & { error?: object };
    expect([202, 409]).toContain(response.status);
    if (response.status === 202) this.given.push({ ...seen, id, behavior });
    expect(answer).toHaveProperty(response.status === 202 ? 'commandId' : 'error');
  }

  override async connect(): Promise<void> {
    await this.drop();
    await super.connect(false);
  }

  /** Restores everything and answers all requests on a fresh page. */
  async settle(): Promise<void> {
    this.losesAcks = false;
    await this.flush();
    await this.connect();
    await this.pass(COMMAND_LEASE_MS + 1);
    await this.connect();
    await this.flush();
    await this.look();
    for (const id of this.#page.keys()) await this.answer(id, 'deny', `last-${id}`);
    await this.connect();
    await this.flush();
  }

  async leftOpen(): Promise<string[]> {
    await this.look();
    return [...this.#held.keys(), ...this.#page.keys()];
  }

  override async close(): Promise<void> {
    this.#pending.cancelAll();
    await super.close();
  }

  #send(name: string, value: object): void {
    this.#seq += 1;
    const event = { type: 'CUSTOM', name, value };
    this.#outbox.push(record(this.#seq, { agentId: AGENT, sessionId: SESSION, event }));
  }

  protected override async take(command: Command): Promise<void> {
    if (command.type !== 'permission.decision') throw new Error(`a ${command.type}`);
    if (!this.#outcomes.has(command.id)) {
      const refusal = await this.#pending.answer(command);
      this.#outcomes.set(command.id, refusal === null ? 'done' : 'failed');
    }
    await this.acknowledge(command.id, this.#outcomes.get(command.id));
  }
}

interface Step {
  name: string;
  run(world: World): void | Promise<void>;
}
const id = fc.constantFrom('p', 'q');
const input = fc.constantFrom({ command: 'ls' }, { command: 'ls', timeout: 1 }, { command: 'rm' });
const named = (name: string, run: Step['run']): Step => ({ name, run });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .tuple(id, input, fc.boolean())
      .map(([one, input, silently]) =>
        named(`ask ${one} ${JSON.stringify(input)} ${silently}`, (w) => w.ask(one, { ...input }, silently)),
      ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(id, input).map(([one, input]) =>
      named(`ask ${one} ${JSON.stringify(input)} on the page`, async (w) => {
        w.ask(one, { ...input }, false);
        await w.flush();
        await w.look();
      }),
    ),
  },
  { weight: 2, arbitrary: id.map((one) => named(`withdraw ${one}`, (w) => w.withdraw(one))) },
  { weight: 2, arbitrary: id.map((one) => named(`repeat ${one}`, (w) => w.repeat(one))) },
  { weight: 5, arbitrary: fc.constant(named('flush', (w) => w.flush())) },
  { weight: 4, arbitrary: fc.constant(named('look', (w) => w.look())) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(id, fc.constantFrom<Behavior>('allow', 'deny'), fc.nat(3))
      .map(([one, behavior, n]) => named(`${behavior} ${one} as c${n}`, (w) => w.answer(one, behavior, `c${n}`))),
  },
  { weight: 3, arbitrary: fc.constant(named('connect', (w) => w.connect())) },
  { weight: 2, arbitrary: fc.constant(named('drop', (w) => w.drop())) },
  { weight: 3, arbitrary: fc.constant(named('work', (w) => w.work())) },
  { weight: 1, arbitrary: fc.constant(named('wait for the lease', (w) => w.pass(COMMAND_LEASE_MS + 1))) },
  {
    weight: 2,
    arbitrary: fc.boolean().map((loses) =>
      named(`acks are ${loses ? 'lost' : 'delivered'}`, (w) => {
        w.losesAcks = loses;
      }),
    ),
  },
);

describe('answers', () => {
  it('apply only to the input they were given for, with any reopening, withdrawal and resend', async () => {
    let reached = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 16, size: 'max' }), async (steps) => {
        world = await World.open();
        for (const { run } of steps) await run(world);
        await world.settle();
        for (const { id, input, digest, behavior } of world.applied) {
          const meant = world.given.filter((one) => one.id === id && one.behavior === behavior);
          expect(meant).toContainEqual({ id, input, digest, behavior });
        }
        // Each opening is answered once, and every answer to a current request takes effect.
        expect(new Set(world.applied.map(({ digest }) => digest)).size).toBe(world.applied.length);
        expect(await world.leftOpen()).toEqual([]);
        reached += world.applied.length;
        await world.close();
        world = null;
      }),
      { numRuns: 40 },
    );
    expect(reached).toBeGreaterThan(5);
  });
});
