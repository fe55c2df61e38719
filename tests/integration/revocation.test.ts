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

/** Expects a stream to deliver an event written after the credentials were reloaded. */
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
  ] as const)(
    'a credential of the role %s closes its connections at %s when it is revoked',
    async (holder, _, isSecond) => {
      expect(await endConnections(await openPlace(isSecond), revoked, holder)).toEqual(expectedEnds(holder));
    },
  );
});

describe('a person demoted to viewer', () => {
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

  test('loses the connections that carry secrets hidden from viewers', async () => {
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

describe('expiry', () => {
  const HOUR_MS = 3_600_000;
  /** The wall clock, which these tests move, and the monotonic one. */
  function movableClock(): { by(ms: number): void; passes(ms: number): void } {
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

  test('ends an unused sign-in after its time, and keeps a used one', async () => {
    const clock = movableClock();
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

  test('ends a sign-in, with its stream, when its page is unused', async () => {
    const clock = movableClock();
    const stage = await startStage({ env: { INTERLUDE_SESSION_IDLE_HOURS: '1' } });
    const person = await stage.browser();
    const stream = await stage.stream('/stream?topic=fleet', person);
    await stream.frame('up-to-date');
    clock.passes(HOUR_MS / 2);
    // Automatic requests of a page: stream reconnects, polls, marks, images.
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

  test('keeps a stream open while its sign-in is used at another server', async () => {
    const clock = movableClock();
    const env = { INTERLUDE_SESSION_IDLE_HOURS: '1' };
    const stage = await startStage({ env });
    const second = await startStage({ dataDir: stage.dataDir, env });
    const person = await stage.browser();
    const stream = await stage.stream('/stream?topic=fleet', person);
    await stream.frame('up-to-date');
    clock.passes(HOUR_MS * 0.7);
    expect(await second.status('/me', { as: { ...person, 'x-interlude-page': 'used' } })).toBe(200);
    await untilUseStored(second, clock);
    clock.passes(HOUR_MS * 0.7);
    await expectOpen(stage, stream);
  });

  test('ends a sign-in on this machine after 30 days, used or not', async () => {
    const clock = movableClock();
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

  test('neither locks out nor readmits anyone when the clock is set back', async () => {
    const clock = movableClock();
    const stage = await startStage();
    const person = await stage.browser();
    const embed = bearer((await stage.credential({ kind: 'embed', expiresAt: Date.now() + HOUR_MS })).secret);
    expect([await stage.status('/me', { as: person }), await stage.status('/me', { as: embed })]).toEqual([200, 200]);
    clock.passes(2 * HOUR_MS);
    expect([await stage.status('/me', { as: person }), await stage.status('/me', { as: embed })]).toEqual([200, 401]);
    clock.by(-12 * HOUR_MS);
    expect([await stage.status('/me', { as: person }), await stage.status('/me', { as: embed })]).toEqual([200, 401]);
    // Also after the credentials are reloaded.
    await stage.token({ role: 'viewer' });
    expect(await stage.status('/me', { as: embed })).toBe(401);
  });

  test('ends no sign-in permanently because of a clock that was briefly ahead', async () => {
    const clock = movableClock();
    const stage = await startStage({ env: { INTERLUDE_SESSION_IDLE_HOURS: '1' } });
    const person = await stage.browser();
    expect(await stage.status('/me', { as: person })).toBe(200);
    clock.by(5 * HOUR_MS);
    expect(await stage.status('/me', { as: person })).toBe(401);
    clock.by(-5 * HOUR_MS);
    expect(await stage.status('/me', { as: person })).toBe(200);
  });

  test('accepts a sign-in last used at another server', async () => {
    const clock = movableClock();
    const env = { INTERLUDE_SESSION_IDLE_HOURS: '1' };
    const stage = await startStage({ env });
    const second = await startStage({ dataDir: stage.dataDir, env });
    const person = { ...(await stage.browser()), 'x-interlude-page': 'used' };
    expect(await second.status('/me', { as: person })).toBe(200);
    clock.passes(HOUR_MS / 2);
    expect(await stage.status('/me', { as: person })).toBe(200);
    clock.passes(HOUR_MS * 0.7);
    expect(await stage.status('/me', { as: person })).toBe(200);
    // Refused here at most until the other server has stored the use.
    await second.status('/me', { as: person });
    await untilUseStored(stage, clock);
    expect(await second.status('/me', { as: person })).toBe(200);
  });

  /** Resolves once a server has stored each last use, which it does once a minute. */
  async function untilUseStored(stage: AccessStage, clock: ReturnType<typeof movableClock>): Promise<void> {
    clock.passes(61_000);
    await stage.parts.credentials.invalidate();
  }

  test('ends a code after five minutes', async () => {
    const clock = movableClock();
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
  test('admits one of many concurrent uses at two servers', async () => {
    const first = await startStage();
    const second = await startStage({ dataDir: first.dataDir });
    const code = await first.code();
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 ? first : second).send(`/sign-in?token=${code}`, { as: {} })),
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
    // The question before the sign-in has not used it.
    expect((await stage.send(`/sign-in?token=${code}`, { as: {} })).headers.get('location')).toBe('/');
  });

  test('is worthless when it is revoked', async () => {
    const stage = await startStage();
    const code = await stage.code();
    const { rows } = await stage.parts.database.reader.execute("SELECT id FROM credentials WHERE kind = 'code'");
    await stage.ask(`/credentials/${rows[0]?.id}`, { method: 'DELETE' });
    expect((await stage.send(`/sign-in?token=${code}`, { as: {} })).headers.get('set-cookie')).toBeNull();
  });
});

test('credentials are answered with 503 while the database fails, and accepted afterwards', async () => {
  const failure = Object.assign(new Error('SQLITE_IOERR: disk I/O error'), { code: 'SQLITE_IOERR' });
  await expectUnavailable(await startStage(), () => Promise.reject(failure));
});
