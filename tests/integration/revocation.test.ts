import { once } from 'node:events';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { moveVersion } from '@/lib/access/credential-rows';
import { makeSecret, secretHash } from '@/lib/access/secret';
import type { Me } from '@/lib/protocol/access';
import { EVERYTHING } from '@/lib/protocol/scope';
import { AccessStage, bearer, type Headers, secretOf } from '../support/access-stage';
import { type BusyAgent, busyAgent } from '../support/busy-agent';
import { FrameReader } from '../support/frames';
import { lengthenAudit } from '../support/long-audit';
import { comesWithin, expectWithin, pace } from '../support/pace';
import { startTypescript } from '../support/typescript-process';

const WITHIN_MS = 2_000;

afterEach(() => void vi.restoreAllMocks());

async function stageOf(options?: Parameters<typeof AccessStage.start>[0]): Promise<AccessStage> {
  const stage = await AccessStage.start(options);
  onTestFinished(() => stage.close());
  return stage;
}

/** Where somebody is known already: the server that ends it, and another one on the same file. */
interface Place {
  first: AccessStage;
  here: AccessStage;
  busy: BusyAgent;
  /** Of a file that takes several reads. */
  hash: string;
}

async function placeOf(isSecond: boolean, env: Record<string, string> = {}): Promise<Place> {
  const first = await stageOf({ env });
  const busy = await busyAgent(first, 'a');
  await fillLog(first, busy.agentId);
  const { hash } = await first.ask<{ hash: string }>(`/sessions/${busy.sessionId}/attachments?name=b.txt`, {
    method: 'POST',
    body: new Uint8Array(4_000_000).fill(97),
    headers: { 'content-type': 'text/plain' },
  });
  return { first, busy, hash, here: isSecond ? await stageOf({ dataDir: first.dataDir, env }) : first };
}

/** The ways in which it ends what somebody may, each with whom it ends. */
interface Ending {
  begin(place: Place, role: 'operator' | 'runner'): Promise<{ headers: Headers; end(): Promise<unknown> }>;
}

const made = async (first: AccessStage, role: 'operator' | 'runner') => {
  const { id, ...headers } = await first.token(role === 'runner' ? { role, agent: 'agent-a' } : { role });
  return { id, headers };
};

const ENDINGS: Record<string, Ending> = {
  'an admin revokes it': {
    async begin({ first }, role) {
      const { id, headers } = await made(first, role);
      return { headers, end: () => first.ask(`/credentials/${id}`, { method: 'DELETE' }) };
    },
  },
  'its time is over': {
    async begin({ first }, role) {
      const scope = role === 'runner' ? ({ kind: 'agents', ids: ['agent-a'], prefixes: [] } as const) : EVERYTHING;
      const expiresAt = Date.now() + 2_000;
      const { secret } = await first.credential({ role, scope, expiresAt });
      const rest = () => new Promise((resolve) => setTimeout(resolve, Math.max(0, expiresAt - Date.now())));
      return { headers: bearer(secret), end: rest };
    },
  },
};
const OF_PEOPLE: Record<string, Ending> = {
  ...ENDINGS,
  'what made it is revoked': {
    async begin({ first }) {
      const { id } = await made(first, 'operator');
      const { secret } = await first.credential({ kind: 'embed', role: 'operator', parentId: id });
      return { headers: bearer(secret), end: () => first.ask(`/credentials/${id}`, { method: 'DELETE' }) };
    },
  },
  'the person signs out': {
    async begin({ first }) {
      const headers = await first.browser();
      return { headers, end: () => first.send('/sign-out', { method: 'POST', as: headers }) };
    },
  },
};

/** What somebody may have going on, and how that ends. */
interface GoingOn {
  of: 'operator' | 'runner';
  ends: string;
  /** @returns what resolves with how it ended */
  begin(place: Place, as: Headers): Promise<() => Promise<string>>;
}

const BYE = '["bye",{"reason":"unauthorized"}]';
const CUT = 'broken off';
const api = '/api/v1';

const GOING_ON: Record<string, GoingOn> = {
  'a stream of the dashboard': {
    of: 'operator',
    ends: BYE,
    begin: ({ here, busy }, as) => streamed(here, `/stream?topic=fleet&topic=session:${busy.sessionId}`, as),
  },
  'a stream that only follows a log': {
    of: 'operator',
    ends: BYE,
    begin: ({ here, busy }, as) => streamed(here, `/stream?topic=logs:${busy.agentId}`, as),
  },
  'a runner’s commands': {
    of: 'runner',
    ends: BYE,
    begin: ({ here, busy }, as) => streamed(here, `/agents/${busy.agentId}/commands?runner=r&startedAt=1`, as),
  },
  'an AG-UI client that follows': {
    of: 'operator',
    ends: 'told to its end',
    async begin({ here, busy }, as) {
      const forwardedProps = { interlude: { followMs: 60_000 } };
      const body = { threadId: busy.sessionId, runId: 'r', messages: [], forwardedProps };
      return read(await here.send(`${api}/agui/${busy.agentId}/connect`, { method: 'POST', as, body }));
    },
  },
  'a download that nobody hurries': {
    of: 'operator',
    ends: CUT,
    begin: async ({ here, busy }, as) => read(await here.send(`${api}/agents/${busy.agentId}/logs/download`, { as })),
  },
  'a file that nobody hurries': {
    of: 'operator',
    ends: CUT,
    begin: async ({ here, busy, hash }, as) =>
      read(await here.send(`${api}/attachments/${hash}?session=${busy.sessionId}`, { as })),
  },
};

async function streamed(stage: AccessStage, path: string, as: Headers): Promise<() => Promise<string>> {
  const reader = await stage.stream(path, as);
  await reader.frame('up-to-date');
  return async () => {
    const last = (await reader.end()).at(-1);
    return JSON.stringify([last?.event, last?.data]);
  };
}

/** How long somebody takes over each part of a long answer. */
const SLOWLY_MS = 300;

/** Of which only the beginning is read at first, and the rest slowly. */
async function read(response: Response): Promise<() => Promise<string>> {
  if (response.status !== 200 || response.body === null) throw new Error(await response.text());
  const reader = response.body.getReader();
  expect((await reader.read()).done).toBe(false);
  return async () => {
    try {
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, SLOWLY_MS));
        if ((await reader.read()).done) return 'told to its end';
      }
    } catch {
      return CUT;
    }
  };
}

async function fillLog(stage: AccessStage, agentId: string): Promise<void> {
  const message = 'x'.repeat(1_000);
  const records = Array.from({ length: 800 }, (_, at) => ({
    seq: at + 1,
    kind: 'log',
    agentId,
    occurredAt: at,
    log: { level: 'info', component: 'c', message },
  }));
  for (const epoch of [1, 2, 3]) {
    await stage.ask('/events', {
      method: 'POST',
      body: { producer: { id: `${agentId}/long-${epoch}`, epoch: 1 }, records },
    });
  }
}

/** How it ended, if it did in time. */
function inTime(how: Promise<string>): Promise<string> {
  const withinMs = WITHIN_MS * pace();
  return Promise.race([how, new Promise<string>((resolve) => setTimeout(resolve, withinMs, 'not in time'))]);
}

describe.each([
  ['here', false],
  ['in another server on the same file', true],
])('within two seconds, %s,', (_, isSecond) => {
  for (const [ending, { begin }] of Object.entries(OF_PEOPLE)) {
    test(`nobody comes in any more once ${ending}`, async () => {
      const place = await placeOf(isSecond);
      const { headers, end } = await begin(place, 'operator');
      expect(await place.here.status('/sessions', { as: headers })).toBe(200);
      await end();
      const refused = await refusedTo(place.here, headers);
      expect(refused.headers.get('www-authenticate')).toContain('Bearer');
      expect((await refused.text()).split('\n')).toHaveLength(1);
    });
  }

  for (const [ending, way] of Object.entries(OF_PEOPLE)) {
    test(`everything that goes on ends once ${ending}`, async () => {
      const place = await placeOf(isSecond);
      expect(await endingOf(place, way, 'operator')).toEqual(expectedOf('operator'));
    });
  }

  for (const [ending, way] of Object.entries(ENDINGS)) {
    test(`a runner is sent nothing more once ${ending}`, async () => {
      const place = await placeOf(isSecond);
      expect(await endingOf(place, way, 'runner')).toEqual(expectedOf('runner'));
    });
  }
});

/** How all that somebody has going on ended. */
async function endingOf(place: Place, way: Ending, role: 'operator' | 'runner'): Promise<Record<string, string>> {
  const goingOn = Object.entries(GOING_ON).filter(([, { of }]) => of === role);
  const { headers, end } = await way.begin(place, role);
  const hows: [string, () => Promise<string>][] = [];
  for (const [what, { begin }] of goingOn) hows.push([what, await begin(place, headers)]);
  await end();
  await refusedTo(place.here, headers);
  const ended = hows.map(async ([what, how]) => [what, await inTime(how())] as const);
  return Object.fromEntries(await Promise.all(ended));
}

function expectedOf(role: 'operator' | 'runner'): Record<string, string> {
  const goingOn = Object.entries(GOING_ON).filter(([, { of }]) => of === role);
  return Object.fromEntries(goingOn.map(([what, { ends }]) => [what, ends]));
}

describe.each([
  ['here', false],
  ['in another server on the same file', true],
])('within two seconds, %s, of whoever may less from then on', (_, isSecond) => {
  /** Somebody whom an admin makes a viewer. */
  async function demoted({ first, here }: Place) {
    await first.parts.database.writes.run((transaction) =>
      transaction.execute(`INSERT INTO members (id, issuer, subject, name, role, created_at, last_sign_in_at)
        VALUES ('ada', 'https://id.example', 'ada', 'Ada', 'admin', 1, 1)`),
    );
    const { secret } = await first.credential({ kind: 'session', role: 'admin', memberId: 'ada', idleMs: 3_600_000 });
    const headers = { cookie: `interlude=${secret}`, 'sec-fetch-site': 'same-origin' };
    const end = async () => {
      await first.ask('/members/ada', { method: 'PUT', body: { role: 'viewer' } });
      await comesWithin(
        WITHIN_MS,
        vi.waitUntil(async () => (await here.ask<Me>('/me', { as: headers })).role === 'viewer'),
      );
    };
    return { headers, end };
  }

  const ending = async (
    going: Record<string, (place: Place, as: Headers) => Promise<() => Promise<string>>>,
    place: Place,
  ) => {
    const { headers, end } = await demoted(place);
    const hows: [string, () => Promise<string>][] = [];
    for (const [what, begin] of Object.entries(going)) hows.push([what, await begin(place, headers)]);
    await end();
    return Object.fromEntries(await Promise.all(hows.map(async ([what, how]) => [what, await inTime(how())])));
  };

  test('what they may not ask for any more breaks off, and what they may goes on', async () => {
    const place = await placeOf(isSecond);
    await lengthenAudit(place.first, 6_000);
    const exported = async ({ here }: Place, as: Headers) => read(await here.send(`${api}/audit/export`, { as }));
    const answered = (GOING_ON['an AG-UI client that follows'] as GoingOn).begin;
    const watched = (GOING_ON['a stream of the dashboard'] as GoingOn).begin;
    expect(await ending({ exported, answered, watched }, place)).toEqual({
      exported: CUT,
      answered: 'told to its end',
      watched: 'not in time',
    });
  });

  test('what tells them secrets ends, where their role is told none', async () => {
    const place = await placeOf(isSecond, { INTERLUDE_REDACT_ROLES: 'viewer' });
    const going = Object.entries(GOING_ON).filter(([what, { of }]) => of === 'operator' && !what.includes('AG-UI'));
    expect(await ending(Object.fromEntries(going.map(([what, { begin }]) => [what, begin])), place)).toEqual(
      Object.fromEntries(going.map(([what, { ends }]) => [what, ends])),
    );
  });
});

/** Waits until somebody does not come in any more, which is soon. */
function refusedTo(stage: AccessStage, headers: Headers): Promise<Response> {
  const look = async () => {
    const response = await stage.send('/api/v1/me', { as: headers });
    return response.status === 401 && response;
  };
  return comesWithin(WITHIN_MS, vi.waitUntil(look, { interval: 20 }));
}

test('in a second process, too', async () => {
  const first = await stageOf();
  const child = startTypescript('tests/support/api-process.ts', [], {
    env: { ...process.env, INTERLUDE_TOKEN: secretOf(first.owner), INTERLUDE_DATA_DIR: first.dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill());
  const [port] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const { id, ...headers } = await first.token({ role: 'viewer' });
  const url = `http://127.0.0.1:${Number(port)}/api/v1`;
  const response = await fetch(`${url}/stream?topic=fleet`, { headers });
  const reader = new FrameReader(response.body as ReadableStream<Uint8Array>);
  await reader.frame('up-to-date');
  await first.ask(`/credentials/${id}`, { method: 'DELETE' });
  const over = reader.end().then((frames) => JSON.stringify(frames.at(-1)?.data));
  expect(await inTime(over)).toBe('{"reason":"unauthorized"}');
  expect((await fetch(`${url}/sessions`, { headers })).status).toBe(401);
});

describe('by the clock', () => {
  const HOUR_MS = 3_600_000;
  /** The wall clock, which these tests move, and the steady one, which only goes on. */
  function movable(): { by(ms: number): void; passes(ms: number): void } {
    const [wall, steady] = [Date.now.bind(Date), performance.now.bind(performance)];
    let [moved, passed] = [0, 0];
    vi.spyOn(Date, 'now').mockImplementation(() => wall() + moved);
    vi.spyOn(performance, 'now').mockImplementation(() => steady() + passed);
    return {
      by(ms) {
        moved += ms;
      },
      passes(ms) {
        moved += ms;
        passed += ms;
      },
    };
  }

  test('a sign-in that nobody uses ends after its time, and one that is used does not', async () => {
    const clock = movable();
    const stage = await stageOf({ env: { INTERLUDE_SESSION_IDLE_HOURS: '2' } });
    const second = await stageOf({ dataDir: stage.dataDir, env: { INTERLUDE_SESSION_IDLE_HOURS: '2' } });
    const [used, unused] = [await stage.browser(), await stage.browser()];
    for (let hours = 0; hours < 3; hours += 1) {
      clock.passes(HOUR_MS);
      expect(await stage.status('/me', { as: used })).toBe(200);
    }
    for (const here of [stage, second]) expect(await here.status('/me', { as: unused })).toBe(401);
    expect(await stage.status('/me', { as: used })).toBe(200);
    clock.passes(2 * HOUR_MS);
    expect(await stage.status('/me', { as: used })).toBe(401);
  });

  test('a sign-in with a page that listens counts as used', async () => {
    const clock = movable();
    const stage = await stageOf({ env: { INTERLUDE_SESSION_IDLE_HOURS: '1' } });
    const person = await stage.browser();
    const stream = await stage.stream('/stream?topic=fleet', person);
    await stream.frame('up-to-date');
    for (let times = 0; times < 4; times += 1) {
      clock.passes(HOUR_MS / 2);
      // until the book has looked again
      await new Promise((resolve) => setTimeout(resolve, 600));
    }
    expect(await stage.status('/me', { as: person })).toBe(200);
    expect(stream.frames.map(({ event }) => event)).not.toContain('bye');
  });

  test('a clock set back locks nobody out, and lets nobody in again who was told that it is over', async () => {
    const clock = movable();
    const stage = await stageOf();
    const person = await stage.browser();
    const embed = bearer((await stage.credential({ kind: 'embed', expiresAt: Date.now() + HOUR_MS })).secret);
    expect([await stage.status('/me', { as: person }), await stage.status('/me', { as: embed })]).toEqual([200, 200]);
    clock.passes(2 * HOUR_MS);
    expect([await stage.status('/me', { as: person }), await stage.status('/me', { as: embed })]).toEqual([200, 401]);
    clock.by(-12 * HOUR_MS);
    expect([await stage.status('/me', { as: person }), await stage.status('/me', { as: embed })]).toEqual([200, 401]);
    // also when everything is read again
    await stage.token({ role: 'viewer' });
    expect(await stage.status('/me', { as: embed })).toBe(401);
  });

  test('a clock that runs ahead for a moment ends no sign-in for good', async () => {
    const clock = movable();
    const stage = await stageOf({ env: { INTERLUDE_SESSION_IDLE_HOURS: '1' } });
    const person = await stage.browser();
    expect(await stage.status('/me', { as: person })).toBe(200);
    clock.by(5 * HOUR_MS);
    expect(await stage.status('/me', { as: person })).toBe(401);
    clock.by(-5 * HOUR_MS);
    expect(await stage.status('/me', { as: person })).toBe(200);
  });

  test('a sign-in that is used at another server is known here, however long ago it was used here', async () => {
    const clock = movable();
    const env = { INTERLUDE_SESSION_IDLE_HOURS: '1' };
    const stage = await stageOf({ env });
    const second = await stageOf({ dataDir: stage.dataDir, env });
    const person = await stage.browser();
    expect(await second.status('/me', { as: person })).toBe(200);
    clock.passes(HOUR_MS / 2);
    expect(await stage.status('/me', { as: person })).toBe(200);
    clock.passes(HOUR_MS * 0.7);
    expect(await stage.status('/me', { as: person })).toBe(200);
    // refused here at most until the other has written down that it was used
    await second.status('/me', { as: person });
    await noted(stage, clock);
    expect(await second.status('/me', { as: person })).toBe(200);
  });

  /** Until a server has written down when each was used last, which it does once a minute. */
  async function noted(stage: AccessStage, clock: ReturnType<typeof movable>): Promise<void> {
    clock.passes(61_000);
    await stage.parts.credentials.changed();
  }

  test('a code is good for five minutes', async () => {
    const clock = movable();
    const stage = await stageOf();
    const [soon, late] = [await stage.code(), await stage.code()];
    clock.passes(4 * 60_000);
    expect((await stage.send(`/sign-in?token=${soon}`, { as: {} })).headers.get('location')).toBe('/');
    clock.passes(61_000);
    const refused = await stage.send(`/sign-in?token=${late}`, { as: {} });
    expect([refused.headers.get('location'), refused.headers.get('set-cookie')]).toEqual([
      '/signed-out?reason=old-link',
      null,
    ]);
  });
});

describe('a code', () => {
  test('lets in one, of many that come at once, at two servers', async () => {
    const first = await stageOf();
    const second = await stageOf({ dataDir: first.dataDir });
    const code = await first.code();
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, at) => (at % 2 ? first : second).send(`/sign-in?token=${code}`, { as: {} })),
    );
    expect(all.filter(({ headers }) => headers.get('set-cookie') !== null)).toHaveLength(1);
    expect(new Set(all.map(({ headers }) => headers.get('location')))).toEqual(
      new Set(['/', '/signed-out?reason=old-link']),
    );
  });

  test('opens nothing by itself', async () => {
    const stage = await stageOf();
    const code = await stage.code();
    expect(await stage.status('/me', { as: bearer(code) })).toBe(401);
    const cookie = { cookie: `interlude=${code}`, 'sec-fetch-site': 'same-origin' };
    expect(await stage.status('/me', { as: cookie })).toBe(401);
    // being asked about has not spent it
    expect((await stage.send(`/sign-in?token=${code}`, { as: {} })).headers.get('location')).toBe('/');
  });

  test('that is revoked is worthless', async () => {
    const stage = await stageOf();
    const code = await stage.code();
    const { rows } = await stage.parts.database.reader.execute("SELECT id FROM credentials WHERE kind = 'code'");
    await stage.ask(`/credentials/${rows[0]?.id}`, { method: 'DELETE' });
    expect((await stage.send(`/sign-in?token=${code}`, { as: {} })).headers.get('set-cookie')).toBeNull();
  });
});

describe('while the database does not answer', () => {
  const WAYS: Record<string, () => Promise<never>> = {
    'with errors': () =>
      Promise.reject(Object.assign(new Error('SQLITE_IOERR: disk I/O error'), { code: 'SQLITE_IOERR' })),
    'at all': () => new Promise(() => {}),
  };
  for (const [how, fails] of Object.entries(WAYS)) {
    test(`${how}, credentials are told so, and the installation’s own token is known all the same`, async () => {
      vi.spyOn(console, 'error').mockImplementation(() => {});
      const stage = await stageOf();
      const { id: _, ...known } = await stage.token({ role: 'viewer' });
      const { id: __, ...unseen } = await stage.token({ role: 'viewer' });
      const person = await stage.browser();
      expect(await stage.status('/me', { as: known })).toBe(200);
      const { reader } = stage.parts.database;
      for (const method of ['execute', 'batch'] as const) vi.spyOn(reader, method).mockImplementation(fails);
      for (const headers of [unseen, known, person]) {
        // what is remembered counts for a moment
        const deadline = performance.now() + 10_000;
        let response = await stage.send('/api/v1/me', { as: headers });
        while (response.status === 200 && performance.now() < deadline) {
          await new Promise((resolve) => setTimeout(resolve, 50));
          response = await stage.send('/api/v1/me', { as: headers });
        }
        expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
        expect(await response.json()).toMatchObject({ error: { code: 'unavailable' } });
      }
      expect(await stage.status('/me', { as: stage.owner })).toBe(200);
      vi.restoreAllMocks();
      for (const headers of [unseen, known, person]) expect(await stage.status('/me', { as: headers })).toBe(200);
    });
  }
});

describe('with very many credentials', () => {
  /** As if they had been made over the years. */
  async function many(stage: AccessStage, count: number): Promise<Headers[]> {
    const { database } = stage.parts;
    const secrets = Array.from({ length: count }, () => makeSecret('token'));
    const rows = secrets.map((secret, at) => [`token-${at}`, secretHash(secret)]);
    await database.writes.run(async (transaction) => {
      await transaction.execute({
        sql: `INSERT INTO credentials (id, kind, hash, name, role, scope, created_at, last_used_at)
          SELECT value->>0, 'token', value->>1, 'one of many', 'viewer', '{"kind":"everything"}', 1, 1 FROM json_each(?)`,
        args: [JSON.stringify(rows)],
      });
      await moveVersion(transaction);
    });
    return secrets.map(bearer);
  }

  test('each is known, and ended, as fast as one of few', async () => {
    const stage = await stageOf();
    const all = await many(stage, 10_000);
    for (const headers of all) expect(await stage.status('/me', { as: headers })).toBe(200);
    const stream = await stage.stream('/stream?topic=fleet', all[5_000] as Headers);
    await stream.frame('up-to-date');
    const since = performance.now();
    await stage.ask('/credentials/token-5000', { method: 'DELETE' });
    expect((await stream.end()).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'unauthorized' } });
    expectWithin(performance.now() - since, WITHIN_MS);
    expect(await stage.status('/me', { as: all[5_001] as Headers })).toBe(200);
  });

  test('a stream ends when its time is over, however many others have come since', async () => {
    const stage = await stageOf();
    const expiresAt = Date.now() + 8_000;
    const { secret } = await stage.credential({ kind: 'embed', expiresAt });
    const stream = await stage.stream('/stream?topic=fleet', bearer(secret));
    await stream.frame('up-to-date');
    const { credentials } = stage.parts;
    // nobody who sends secrets that are none may push others out of what is remembered
    const strangers = Array.from({ length: 21_000 }, () => makeSecret('token'));
    for (const stranger of strangers) await credentials.find(stranger);
    const over = stream.end().then((frames) => JSON.stringify(frames.at(-1)?.data));
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, expiresAt - Date.now())));
    expect(await inTime(over)).toBe('{"reason":"unauthorized"}');
  });
});
