import type { Scope } from '@interlude/protocol/scope';
import fc from 'fast-check';
import { afterEach, expect, it, vi } from 'vitest';
import type { Database } from '@/db/client';
import { FanOut } from '@/lib/server/fan-out/fan-out';
import { AccessStage, bearer, type Headers } from '../support/access-stage';
import type { FrameReader } from '../support/frames';
import { listenTo } from '../support/frames';
import { arbitraryAction, readingPaths, sessionsOf, Tenant, type TenantAction } from '../support/tenant';
import { TEST_MS } from '../support/timeouts';

/**
 * A reader's responses and frames are byte-identical whatever other tenants do. Positions count all tenants' commits,
 * so they are compared by rank among those the same reader received.
 */

const RUNS = Number(process.env.TENANT_RUNS ?? 2);
const LIMIT_MS = Math.max(TEST_MS, RUNS * 12_000);

/** Positions start here, so that no other number looks like a position. */
const FIRST_POSITION = 7_000_000_000_000;
const POSITION = /\b7\d{12}\b/g;
/** Random ids, and digests that include a position. */
const DRAWN = /\b([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64})\b/g;
const NOW = 1_795_170_100_000;

const OURS = ['acme-1', 'acme-2'];
/** Other tenants' ids, similar to ours. */
const THEIRS = ['acme_1', 'acme', 'ACME-1', "acme'-1", 'acm', 'b%-\u{1F9F5}'];
const SESSION = 'acme-1/one';

const READERS: Record<string, { scope: Scope; topics: string[] }> = {
  'of agents by their ids': {
    scope: { kind: 'agents', ids: OURS, prefixes: [] },
    topics: ['fleet', 'session:acme-1/one', 'session:acme-2/two', 'logs:acme-1'],
  },
  'of agents by how their ids begin': {
    scope: { kind: 'agents', ids: [], prefixes: ['acme-'] },
    topics: ['fleet', 'logs:acme-1', 'logs:acme-2'],
  },
  'of a session': {
    scope: { kind: 'session', sessionId: SESSION },
    topics: ['fleet', `session:${SESSION}`],
  },
  'of a log': { scope: { kind: 'log', agentId: 'acme-1' }, topics: ['fleet', 'logs:acme-1'] },
};

type Step = { by: 'us' | 'them'; does: TenantAction } | { by: 'reader'; after: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ by: fc.constant('us' as const), does: arbitraryAction }) },
  {
    weight: 6,
    arbitrary: fc.record({
      by: fc.constant('them' as const),
      does: fc
        .record({ agent: fc.nat(THEIRS.length - 1), does: arbitraryAction })
        .map(({ agent, does }) => ({ ...does, agent })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ by: fc.constant('reader' as const), after: fc.nat(1_000) }) },
);

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  vi.restoreAllMocks();
});

/** A scoped reader and everything it received. */
class Reader {
  readonly received: string[] = [];
  readonly headers: Headers;
  readonly #stage: AccessStage;
  readonly #scope: Scope;
  readonly #topics: string;
  #live: FrameReader | null = null;

  constructor(stage: AccessStage, headers: Headers, { scope, topics }: { scope: Scope; topics: string[] }) {
    this.#stage = stage;
    this.headers = headers;
    this.#scope = scope;
    this.#topics = topics.map((topic) => `topic=${encodeURIComponent(topic)}`).join('&');
  }

  async listen(): Promise<void> {
    this.#live = await this.#stage.stream(`/stream?${this.#topics}`, this.headers);
    await this.#live.frame('up-to-date');
  }

  async leave(): Promise<void> {
    await this.#live?.cancel();
  }

  /** Waits for the newest row in its scope. */
  async catchUpLive(): Promise<void> {
    const newest = await this.#newest();
    const { frames } = this.#live as FrameReader;
    const has = () => Math.max(0, ...frames.map(({ id }) => Number(id ?? 0))) >= newest || frames.length === 0;
    if (newest > this.#joined) await this.#live?.until(() => has());
  }

  get #joined(): number {
    const [hello] = this.#live?.frames ?? [];
    return hello?.event === 'hello' ? Number(hello.data.position) : 0;
  }

  /** The newest position in scope, computed independently from the database. */
  async #newest(): Promise<number> {
    const [kind] = [this.#scope.kind];
    const agent = (column: string) => (kind === 'agents' ? `${column} IN ('acme-1', 'acme-2')` : 'FALSE');
    const session = (column: string) => (kind === 'session' ? `${column} = '${SESSION}'` : agent('agent_id'));
    const topics = decodeURIComponent(this.#topics);
    const events = sessionsOf('acme-1')
      .concat(sessionsOf('acme-2'))
      .filter((id) => topics.includes(`session:${id}`));
    const logs = OURS.filter((id) => topics.includes(`logs:${id}`));
    const list = (ids: string[]) => ids.map((id) => `'${id}'`).join(', ');
    const { rows } = await this.#stage.parts.database.reader.execute(`SELECT max(at) AS at FROM (
      SELECT max(position) AS at FROM events WHERE session_id IN (${list(events)})
      UNION ALL SELECT max(position) FROM log_lines WHERE agent_id IN (${list(logs)})
      UNION ALL SELECT max(updated_position) FROM agents WHERE ${agent('id')}
      UNION ALL SELECT max(updated_position) FROM sessions WHERE ${session('id')}
      UNION ALL SELECT max(updated_position) FROM tasks WHERE ${session('session_id')}
      UNION ALL SELECT max(updated_position) FROM obligations WHERE ${session('session_id')}
      UNION ALL SELECT max(updated_position) FROM inbox WHERE ${session('session_id')})`);
    return Number(rows[0]?.at ?? 0);
  }

  async read(path: string, headers: Headers = {}): Promise<string> {
    const response = await this.#stage.send(`/api/v1${path}`, { as: this.headers, headers });
    const text = await response.text();
    this.received.push(
      `${decodeURIComponent(path)} ${response.status} ${JSON.stringify([...response.headers])} ${text}`,
    );
    return text;
  }

  /** Reads a list page by page while others write. */
  async readAll(path: string, meanwhile: () => Promise<void>): Promise<void> {
    for (let after = '0'; after !== ''; ) {
      const text = await this.read(`${path}limit=1&after=${encodeURIComponent(after)}`);
      after = (JSON.parse(text) as { next?: string | null }).next ?? '';
      await meanwhile();
    }
  }

  /** Reads the stream since a position. */
  async catchUp(after: string | null, how: 'after' | 'last-event-id' = 'after'): Promise<void> {
    const query = after === null || how !== 'after' ? '' : `&after=${after}`;
    const headers: Headers = after !== null && how === 'last-event-id' ? { 'last-event-id': after } : {};
    const stream = await this.#stage.stream(`/stream?${this.#topics}${query}`, this.headers, { headers });
    await stream.frame('up-to-date');
    await stream.cancel();
    this.received.push(JSON.stringify(stream.frames));
  }

  /** A position that the reader has received. */
  position(of: number): string {
    const known = positionsIn(this.received);
    return String(known[of % Math.max(1, known.length)] ?? 0);
  }

  /** Everything received, with positions and random ids normalized. */
  get normalized(): string[] {
    const all = [...this.received, JSON.stringify(this.#live?.frames ?? [])];
    return renamed(all);
  }
}

function renamed(all: readonly string[]): string[] {
  const ranks = new Map(positionsIn(all).map((position, rank) => [position, rank]));
  const uuids = new Map<string, number>();
  const numbered = (uuid: string) => {
    if (!uuids.has(uuid)) uuids.set(uuid, uuids.size);
    return `<id ${uuids.get(uuid)}>`;
  };
  return all.map((text) => text.replace(POSITION, (each) => `<${ranks.get(Number(each))}>`).replace(DRAWN, numbered));
}

/** The same database with another tenant's write before each read. */
function disturbed(database: Database, disturb: () => Promise<void>): Database {
  const batch: Database['reader']['batch'] = async (...statements) => {
    await disturb();
    return database.reader.batch(...statements);
  };
  const { execute, transaction } = database.reader;
  return { ...database, reader: { execute, transaction, batch } };
}

function positionsIn(texts: readonly string[]): number[] {
  const found = new Set(texts.flatMap((text) => text.match(POSITION) ?? []).map(Number));
  return [...found].sort((a, b) => a - b);
}

async function world(areOthersThere: boolean) {
  const stage = await AccessStage.start();
  ends.push(() => stage.close());
  await stage.parts.database.writes.run((transaction) =>
    transaction.execute(`INSERT INTO counter (id, position) VALUES (1, ${FIRST_POSITION})`),
  );
  const made = async (role: 'operator' | 'runner') =>
    bearer((await stage.credential({ role, scope: { kind: 'agents', ids: OURS, prefixes: [] } })).secret);
  const runner = await made('runner');
  const us = new Tenant(stage, OURS, await made('operator'), { runner });
  const them = new Tenant(stage, THEIRS, stage.owner);
  const others = async (does: TenantAction) => {
    if (areOthersThere) await them.do(does);
  };
  if (areOthersThere) await them.arrive();
  await us.arrive();
  return { stage, us, others, runner };
}

/** Plays steps with or without the other tenants. @returns what each reader received */
async function play(steps: readonly Step[], areOthersThere: boolean): Promise<Record<string, string[]>> {
  const { stage, us, others, runner } = await world(areOthersThere);
  const readers: Reader[] = [];
  for (const { scope, topics } of Object.values(READERS)) {
    const { secret } = await stage.credential({ role: 'operator', scope });
    const reader = new Reader(stage, bearer(secret), { scope, topics });
    readers.push(reader);
    await reader.listen();
  }
  let at = 0;
  const meanwhile = () => {
    at += 1;
    return others({ agent: at, session: at % 2, what: 'question', of: at % 3 });
  };
  for (const each of steps) {
    if (each.by === 'them') await others(each.does);
    if (each.by === 'reader') for (const reader of readers) await reader.catchUp(reader.position(each.after));
    if (each.by !== 'us') continue;
    const answered = await us.do(each.does);
    for (const reader of readers) await reader.catchUpLive();
    readers[0]?.received.push(answered);
  }
  // a different part each time
  const isChosen = (_: string, index: number) => index % 3 === steps.length % 3;
  const chosen = [...readingPaths(OURS), ...readingPaths(THEIRS.slice(0, 2))].filter(isChosen);
  for (const reader of readers) {
    for (const path of chosen) {
      await reader.read(path);
      if (path.length % 7 === 0) await meanwhile();
    }
    for (const path of ['/sessions?', '/agents?', '/inbox?', '/sessions?agent=acme-1&']) {
      await reader.readAll(path, meanwhile);
    }
    await reader.catchUp('0');
    await meanwhile();
    await reader.catchUp(null);
    await reader.catchUp(reader.position(steps.length), 'last-event-id');
    // beyond all known positions
    await reader.catchUp(String(Number(reader.position(-1 >>> 1)) + 9_000_000));
    await reader.catchUp(String(Number(reader.position(0)) + 100_000_000), 'last-event-id');
  }
  await meanwhile();
  // changes of the agent's row by connects and disconnects are published immediately
  for (const reader of readers) await reader.leave();
  for (const after of ['', `&after=${readers[0]?.position(3)}`]) {
    const commands = await stage.stream(`/agents/acme-1/commands?runner=r&startedAt=1${after}`, runner);
    await commands.frame('up-to-date');
    await commands.cancel();
    readers[0]?.received.push(JSON.stringify(commands.frames));
  }
  const stories = Object.fromEntries(
    Object.keys(READERS).map((name, index) => [name, readers[index]?.normalized ?? []]),
  );
  await ends.pop()?.();
  return stories;
}

it('a reader’s output does not depend on other tenants', { timeout: LIMIT_MS }, async () => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 40, size: 'max' }), async (steps) => {
      const alone = await play(steps, false);
      const among = await play(steps, true);
      for (const [name, normalized] of Object.entries(among)) {
        for (const [index, text] of normalized.entries()) {
          expect([name, text]).toEqual([name, alone[name]?.[index]]);
        }
        expect(normalized.length).toBe(alone[name]?.length);
      }
    }),
    {
      numRuns: RUNS,
      examples: [
        [
          [
            { by: 'them', does: { agent: 0, session: 0, what: 'arrange', of: 0 } },
            { by: 'us', does: { agent: 0, session: 0, what: 'send-message', of: 0 } },
          ],
        ],
      ],
    },
  );
});

it('a runner’s resend gets the same response, whatever other tenants do', async () => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  const { us, others } = await world(true);
  const does: TenantAction = { agent: 0, session: 0, what: 'question', of: 0 };
  await us.do(does);
  const before = await us.repeat();
  await others(does);
  expect(await us.repeat()).toBe(before);
});

it('a runner’s unchanged status does not reveal other tenants’ writes', async () => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  const { us, others } = await world(true);
  const does: TenantAction = { agent: 0, session: 0, what: 'status', of: 1 };
  await us.do(does);
  await others({ ...does, what: 'question' });
  expect(await us.do(does)).toContain('"position":"0"');
});

it('catch-up pages do not reveal other tenants’ writes in between', { timeout: LIMIT_MS }, async () => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 30, size: 'max' }),
      fc.array(arbitraryAction, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 4 }),
      fc.nat(30),
      async (steps, disturbances, rows, from) => {
        const [alone, among] = [await catchUps(false), await catchUps(true)];
        expect(among).toEqual(alone);

        async function catchUps(areOthersThere: boolean): Promise<string[]> {
          const { stage, us, others } = await world(areOthersThere);
          let known = 0;
          for (const [index, each] of steps.entries()) {
            if (each.by === 'us') await us.do(each.does);
            if (each.by === 'them') await others(each.does);
            if (index === from) known = Number((await stage.parts.database.reader.execute(newestOfOurs)).rows[0]?.at);
          }
          let at = 0;
          const database = disturbed(stage.parts.database, async () => {
            at += 1;
            const does = disturbances[at % disturbances.length] as TenantAction;
            await others({ ...does, agent: at });
          });
          const fanOut = new FanOut(database, { page: { rows, bytes: 100_000 }, pollMs: 60_000 });
          ends.push(async () => fanOut.close());
          const stories: string[] = [];
          for (const { scope, topics } of Object.values(READERS)) {
            const stream = await listenTo(fanOut, topics, { scope, after: known });
            await stream.frame('up-to-date');
            await stream.cancel();
            stories.push(...renamed([JSON.stringify(stream.frames)]));
          }
          for (const end of ends.splice(0).reverse()) await end();
          return stories;
        }
      },
    ),
    { numRuns: RUNS * 2 },
  );
});

it('one session’s output does not depend on the agent’s other sessions', { timeout: LIMIT_MS }, async () => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  const here = arbitraryAction.map((one) => ({ by: 'us' as const, does: { ...one, agent: 0, session: 0 } }));
  const elsewhere = arbitraryAction
    .filter(({ what }) => !OF_THE_AGENT.has(what))
    .map((one) => ({ by: 'them' as const, does: { ...one, agent: 0, session: 1 } }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(here, elsewhere), { minLength: 4, maxLength: 40, size: 'max' }),
      async (steps) => {
        // an outbox numbers its records across sessions
        const plain = (normalized: string[]) => normalized.map((text) => text.replace(/"seq":\d+/g, '"seq":0'));
        const [alone, among] = [plain(await receivedWhile(false)), plain(await receivedWhile(true))];
        expect(among).toEqual(alone);

        async function receivedWhile(isBusyElsewhere: boolean): Promise<string[]> {
          const { stage, us } = await world(false);
          const sibling = new Tenant(stage, OURS, stage.owner, { mark: 'sibling' });
          const { secret } = await stage.credential({ role: 'operator', scope: READERS['of a session']?.scope });
          const reader = new Reader(stage, bearer(secret), {
            scope: { kind: 'session', sessionId: SESSION },
            topics: ['fleet', `session:${SESSION}`],
          });
          await reader.listen();
          for (const { by, does } of steps) {
            if (by === 'them' && isBusyElsewhere) await sibling.do(does);
            if (by === 'us') await us.do(does);
            if (by === 'us') await reader.catchUpLive();
          }
          for (const path of readingPaths(['acme-1'])) await reader.read(path);
          await reader.catchUp('0');
          await reader.catchUp(null);
          for (const end of ends.splice(0).reverse()) await end();
          return reader.normalized;
        }
      },
    ),
    { numRuns: RUNS * 2 },
  );
});

/** Actions of the agent as a whole, visible in all of its sessions. */
const OF_THE_AGENT = new Set<TenantAction['what']>([
  'status',
  'hook-failure',
  'log-level',
  'level-command',
  'stray-task',
  'discard',
  'snooze',
  'claim',
  'lost',
  'acknowledge',
]);

const newestOfOurs = `SELECT max(updated_position) AS at FROM sessions WHERE agent_id IN ('acme-1', 'acme-2')`;
