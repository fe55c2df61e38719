import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type KindName, LIFE_KINDS, type LifeKind } from '../support/lives/life-kinds';
import { DEATHS, type Death, type LifePlan } from '../support/lives/simulated-life';
import { SimulatedWorld, type WorldPlan } from '../support/lives/simulated-world';
import { scale, TEST_MS } from '../support/timeouts';

/**
 * Invariant 8 over simulated agents of every kind: 300 in `quick`, 2,500 in `full`, 200,000 in a soak. Each plays part
 * of a real recording until the agent, bridge, runner or server dies, or two together.
 *
 * One process, one clock. Adapters, the runner host's decisions (open work, status records, restarts, reachability),
 * ingest, database, due work and page queries are real. Processes, connections, runner timers and the outbox file are
 * simulated. Excluded: death of an agent behind a living bridge, which no runner can detect before the next message.
 */
const WORLDS = 25;
const LIVES = { quick: 60, full: 100, soak: 400 }[scale];
const LATEST_DEATH_MS = 12_000;

function deathsOf({ watch, hasBridge = false }: LifeKind, hasServerDeath: boolean): Death[] {
  return DEATHS.filter((death) => {
    if (death === 'agent') return !hasBridge && watch !== 'promise';
    if (death === 'bridge') return hasBridge;
    if (watch === 'promise') return death === 'runner';
    return hasServerDeath || !death.includes('server');
  });
}

const lifeOf = (kind: KindName, hasServerDeath: boolean): fc.Arbitrary<LifePlan> =>
  fc.record({
    kind: fc.constant(kind),
    recording: fc.nat(99),
    part: fc.double({ min: 0.05, max: 1, noNaN: true }),
    isAtWork: fc.constantFrom(true, true, true, false),
    death: fc.constantFrom(...deathsOf(LIFE_KINDS[kind], hasServerDeath)),
    diesAtMs: fc.integer({ min: 1_000, max: LATEST_DEATH_MS }),
    quietMs: fc.constantFrom(0, 5_000),
    isSilent: fc.boolean(),
    unsent: fc.nat(3),
    takeOverMs: fc.option(fc.integer({ min: 500, max: 29_000 })),
    crashes: fc.integer({ min: 1, max: 6 }),
    askMs: fc.constantFrom(0, 3_000),
    writtenAfterMs: fc.constantFrom(null, null, null, 500, 8_000, 14_000, 28_000),
    phase: fc.nat(9_999),
  });

const kinds = fc.constantFrom(...(Object.keys(LIFE_KINDS) as KindName[]));
const server = fc.option(
  fc.record({
    diesAtMs: fc.integer({ min: 5, max: 12 }).map((seconds) => seconds * 1_000),
    hasAnother: fc.boolean(),
    downMs: fc.integer({ min: 500, max: 10_000 }),
  }),
);
const world: fc.Arbitrary<WorldPlan> = server.chain((dies) =>
  fc.record({
    server: fc.constant(dies),
    lives: fc.array(
      kinds.chain((kind) => lifeOf(kind, dies !== null)),
      { minLength: LIVES, maxLength: LIVES },
    ),
  }),
);

it(
  'a page shows nothing as working or waiting 30 s after the responsible process has died',
  async () => {
    const figures = new Map<string, { lives: number; atWork: number; slowestMs: number }>();
    const property = fc.asyncProperty(world, async (plan) => {
      const simulated = await SimulatedWorld.open(plan);
      await simulated.run();
      expect(simulated.wrongs).toEqual([]);
      for (const { plan: life, wasAtWork, wrongForMs } of simulated.lived) {
        const servers = plan.server?.hasAnother === true ? ', another server goes on' : '';
        const name = life.death + (life.death.includes('server') ? servers : '');
        const figure = figures.get(name) ?? { lives: 0, atWork: 0, slowestMs: 0 };
        figures.set(name, figure);
        figure.lives += 1;
        figure.atWork += wasAtWork ? 1 : 0;
        figure.slowestMs = Math.max(figure.slowestMs, wrongForMs);
      }
    });
    // the message contains the failing life's plan, so shrinking isn't needed
    await fc.assert(property, { numRuns: WORLDS, endOnFailure: true });
    if (scale === 'quick') return;
    for (const [name, { lives, atWork, slowestMs }] of figures) {
      process.stdout.write(
        `death of ${name}: ${lives} lives, ${atWork} at work, wrong for ${slowestMs / 1_000} s at most\n`,
      );
    }
  },
  3 * TEST_MS,
);
