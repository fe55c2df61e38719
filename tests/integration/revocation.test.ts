import { afterEach, describe, expect, test, vi } from 'vitest';
import { type AccessStage, bearer, expectUnavailable, fillAudit } from '../support/access-stage';
import { busyAgent } from '../support/busy-agent';
import type { FrameReader } from '../support/frames';
import {
  COMPLETE,
  CONNECTIONS,
  demotedPerson,
  ENDINGS_OF_PEOPLE,
  endConnections,
  expectedEnds,
  openPlace,
  readSlowly,
  startStage,
  TRUNCATED,
  untilRefused,
} from '../support/open-connections';

afterEach(() => void vi.restoreAllMocks());

/** Expects a stream to deliver an event that is written after the credentials were looked up again. */
async function expectOpen(
  stage: AccessStage,
  stream: FrameReader,
  about = { agentId: 'later', sessionId: 'later' },
): Promise<void> {
  await stage.parts.credentials.invalidate();
  const event = { type: 'CUSTOM', name: 'still-here' };
  const records = [{ seq: 1, kind: 'event', ...about, occurredAt: Date.now(), event }];
  const { frames } = stream;
  const before = frames.length;
  await stage.ask('/events', { method: 'POST', body: { producer: { id: 'later', epoch: 1 }, records } });
  await stream.until((all) => all.slice(before).some((frame) => JSON.stringify(frame).includes(about.sessionId)));
  expect(frames.map((frame) => frame.event)).not.toContain('bye');
}

describe('a credential', () => {
  test.each(Object.entries(ENDINGS_OF_PEOPLE))('is refused once %s', async (_, ending) => {
    const stage = await startStage();
    await busyAgent(stage, 'a');
    const { headers, end } = await ending(stage, 'operator');
    expect(await stage.status('/sessions', { as: headers })).toBe(200);
    await end();
    const refused = await untilRefused(stage, headers);
    expect(refused.headers.get('www-authenticate')).toContain('Bearer');
    expect((await refused.text()).split('\n')).toHaveLength(1);
  });

  const revoked = ENDINGS_OF_PEOPLE['an admin revokes it'] as (typeof ENDINGS_OF_PEOPLE)[string];
  test.each([
    ['operator', 'the same server', false],
    ['operator', 'another server on the same file', true],
    ['runner', 'another server on the same file', true],
  ] as const)('of the role %s ends its connections at %s when it is revoked', async (holder, _, isSecond) => {
    expect(await endConnections(await openPlace(isSecond), revoked, holder)).toEqual(expectedEnds(holder));
  });
});

describe('a person who becomes a viewer', () => {
  test('loses the connections that only admins may hold, and keeps the others', async () => {
    const place = await openPlace(true);
    const { here, busy } = place;
    await fillAudit(place.first, 6_000);
    const { headers, end } = await demotedPerson(place);
    const exported = await readSlowly(await here.send('/api/v1/audit/export', { as: headers }));
    const answered = await CONNECTIONS['an AG-UI client']?.open(place, headers);
    const watched = await here.stream(`/stream?topic=session:${busy.sessionId}`, headers);
    await watched.frame('up-to-date');
    await end();
    expect([await exported(), await answered?.()]).toEqual([TRUNCATED, COMPLETE]);
    await expectOpen(here, watched, { agentId: busy.agentId, sessionId: busy.sessionId });
  });

  test('loses the connections that carry secrets, where viewers are sent none', async () => {
    const place = await openPlace(true, { INTERLUDE_REDACT_ROLES: 'viewer' });
    const carrying = Object.entries(CONNECTIONS).filter(
      ([name, { of }]) => of === 'operator' && !name.includes('AG-UI'),
    );
    const { headers, end } = await demotedPerson(place);
    const opened: [string, () => Promise<string>][] = [];
    for (const [name, { open }] of carrying) opened.push([name, await open(place, headers)]);
    await end();
    const ended = await Promise.all(opened.map(async ([name, how]) => [name, await how()]));
    expect(ended).toEqual(carrying.map(([name, { ends }]) => [name, ends]));
  });
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
    const stage = await startStage({ env: { INTERLUDE_SESSION_IDLE_HOURS: '2' } });
    const second = await startStage({ dataDir: stage.dataDir, env: { INTERLUDE_SESSION_IDLE_HOURS: '2' } });
    const [browser, unused] = [await stage.browser(), await stage.browser()];
    const used = { ...browser, 'x-interlude-page': 'used' };
    for (let hours = 0; hours < 3; hours += 1) {
      clock.passes(HOUR_MS);
      expect(await stage.status('/me', { as: used })).toBe(200);
    }
    for (const here of [stage, second]) expect(await here.status('/me', { as: unused })).toBe(401);
    expect(await stage.status('/me', { as: used })).toBe(200);
    clock.passes(2 * HOUR_MS);
    expect(await stage.status('/me', { as: used })).toBe(401);
  });

  test('a sign-in whose page nobody uses ends, with its stream', async () => {
    const clock = movable();
    const stage = await startStage({ env: { INTERLUDE_SESSION_IDLE_HOURS: '1' } });
    const person = await stage.browser();
    const stream = await stage.stream('/stream?topic=fleet', person);
    await stream.frame('up-to-date');
    clock.passes(HOUR_MS / 2);
    // as a page does by itself: its stream has reached its time, it polls, it marks what it shows, it shows images
    const left = { ...person, 'x-interlude-page': '1' };
    await (await stage.stream('/stream?topic=fleet', left)).frame('up-to-date');
    for (const as of [left, person]) expect(await stage.status('/sessions', { as })).toBe(200);
    expect(await stage.status('/agents/nobody/insights/seen', { method: 'POST', as: left, body: {} })).not.toBe(401);
    const prefetch = new Headers({ accept: '*/*', cookie: person.cookie ?? '' });
    expect(await stage.server.visitor(prefetch)).not.toBeNull();
    await expectOpen(stage, stream);
    clock.passes(HOUR_MS / 2);
    expect((await stream.end()).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'unauthorized' } });
    expect(await stage.status('/me', { as: person })).toBe(401);
  });

  test('a stream here goes on while its sign-in is used at another server', async () => {
    const clock = movable();
    const env = { INTERLUDE_SESSION_IDLE_HOURS: '1' };
    const stage = await startStage({ env });
    const second = await startStage({ dataDir: stage.dataDir, env });
    const person = await stage.browser();
    const stream = await stage.stream('/stream?topic=fleet', person);
    await stream.frame('up-to-date');
    clock.passes(HOUR_MS * 0.7);
    expect(await second.status('/me', { as: { ...person, 'x-interlude-page': 'used' } })).toBe(200);
    await noted(second, clock);
    clock.passes(HOUR_MS * 0.7);
    await expectOpen(stage, stream);
  });

  test('a sign-in on this machine ends 30 days after it began, however much it is used', async () => {
    const clock = movable();
    const stage = await startStage();
    const person = await stage.browser();
    const stream = await stage.stream('/stream?topic=fleet', person);
    for (let days = 5; days < 30; days += 5) {
      clock.passes(5 * 24 * HOUR_MS);
      expect([days, await stage.status('/me', { as: { ...person, 'x-interlude-page': 'used' } })]).toEqual([days, 200]);
    }
    await expectOpen(stage, stream);
    clock.passes(5 * 24 * HOUR_MS);
    expect((await stream.end()).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'unauthorized' } });
    expect(await stage.status('/me', { as: person })).toBe(401);
  });

  test('a clock set back locks nobody out, and lets nobody in again who was told that it is over', async () => {
    const clock = movable();
    const stage = await startStage();
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
    const stage = await startStage({ env: { INTERLUDE_SESSION_IDLE_HOURS: '1' } });
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
    const stage = await startStage({ env });
    const second = await startStage({ dataDir: stage.dataDir, env });
    const person = { ...(await stage.browser()), 'x-interlude-page': 'used' };
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
    await stage.parts.credentials.invalidate();
  }

  test('a code is good for five minutes', async () => {
    const clock = movable();
    const stage = await startStage();
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
    const first = await startStage();
    const second = await startStage({ dataDir: first.dataDir });
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
    const stage = await startStage();
    const code = await stage.code();
    expect(await stage.status('/me', { as: bearer(code) })).toBe(401);
    const cookie = { cookie: `interlude=${code}`, 'sec-fetch-site': 'same-origin' };
    expect(await stage.status('/me', { as: cookie })).toBe(401);
    // being asked about has not spent it
    expect((await stage.send(`/sign-in?token=${code}`, { as: {} })).headers.get('location')).toBe('/');
  });

  test('that is revoked is worthless', async () => {
    const stage = await startStage();
    const code = await stage.code();
    const { rows } = await stage.parts.database.reader.execute("SELECT id FROM credentials WHERE kind = 'code'");
    await stage.ask(`/credentials/${rows[0]?.id}`, { method: 'DELETE' });
    expect((await stage.send(`/sign-in?token=${code}`, { as: {} })).headers.get('set-cookie')).toBeNull();
  });
});

test('credentials are answered with 503 while the database fails, and let in again afterwards', async () => {
  const failure = Object.assign(new Error('SQLITE_IOERR: disk I/O error'), { code: 'SQLITE_IOERR' });
  await expectUnavailable(await startStage(), () => Promise.reject(failure));
});
