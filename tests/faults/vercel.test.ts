import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openDatabase } from '@/db/client';
import { type FrozenFunction, startFrozenFunction } from '../support/frozen-function';
import { record } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { expectWithin } from '../support/timing';
import { buildForVercel, ensureVercelCli } from '../support/vercel-build.mjs';
import { Watcher } from '../support/watcher';
import { WireRunner } from '../support/wire-runner';

/** The Vercel deployment: functions that are frozen while no request is in progress. */
const missing = [ensureLibsqlServer(), ensureVercelCli()].flatMap((found) =>
  'missing' in found ? [found.missing] : [],
);
const TOKEN = 'a-token-for-tests-0123456789';
const CRON_SECRET = 'a-secret-of-the-cron-0123456789';

describe.skipIf(missing.length > 0)('a deployment on Vercel', () => {
  let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
  let build: Awaited<ReturnType<typeof buildForVercel>>;
  /** Two instances of the API function. */
  let instances: [FrozenFunction, FrozenFunction];
  let pages: FrozenFunction;

  beforeAll(async () => {
    libsql = await startLibsqlServer();
    const env = { INTERLUDE_DATABASE_URL: libsql.url, INTERLUDE_TOKEN: TOKEN, CRON_SECRET };
    build = await buildForVercel(env);
    const api = build.functionOf('api/[[...path]]');
    instances = [await startFrozenFunction(api, env), await startFrozenFunction(api, env)];
    pages = await startFrozenFunction(build.functionOf('index'), env);
  });
  afterAll(async () => {
    await Promise.all([...(instances ?? []), pages].map((instance) => instance?.stop()));
    await libsql?.stop();
    build?.remove();
  });

  const bearer = (token = TOKEN) => ({ authorization: `Bearer ${token}` });
  const get = (instance: FrozenFunction, path: string, headers: Record<string, string> = bearer()) =>
    fetch(`${instance.url}${path}`, { headers, redirect: 'manual' });
  const post = (instance: FrozenFunction, producer: string, records: unknown[]) =>
    fetch(`${instance.url}/api/v1/events`, {
      method: 'POST',
      headers: { ...bearer(), 'content-type': 'application/json' },
      body: JSON.stringify({ producer: { id: producer, epoch: 1 }, records }),
    });
  const event = (id: string, seq: number, body: object) =>
    record(seq, { agentId: id, sessionId: id, occurredAt: Date.now(), event: body });
  const stateOf = async (instance: FrozenFunction, id: string) =>
    (await (await get(instance, `/api/v1/sessions/${id}`)).json()).session.state;

  test('is migrated by its build and configured for streams, disconnects and cron', async () => {
    await (await openDatabase({ url: libsql.url, migrates: false })).close();
    expect(build.config.crons).toEqual([{ path: '/api/v1/cron', schedule: expect.any(String) }]);
    for (const name of ['api/[[...path]]', 'index', 'readyz', 'sign-in']) {
      const about = JSON.parse(readFileSync(join(dirname(build.functionOf(name)), '.vc-config.json'), 'utf8'));
      expect([name, about]).toEqual([
        name,
        expect.objectContaining({ maxDuration: 300, supportsCancellation: true, supportsResponseStreaming: true }),
      ]);
    }
  });

  test('stores each record once and in order on either instance, and both show all, while both are frozen in between', async () => {
    const ids = ['v1', 'v2', 'v3', 'v4'];
    const topics = ids.map((id) => `session:${id}`);
    const watchers = instances.map((instance) => new Watcher({ url: instance.url, token: TOKEN }, topics));
    onTestFinished(() => {
      for (const watcher of watchers) watcher.close();
    });
    const before = instances.map(({ freezes }) => freezes);
    const rounds = 12;
    let position = '0';
    await Promise.all(
      ids.map(async (id, index) => {
        for (let round = 0; round < rounds; round += 1) {
          const records = [1, 2, 3].map((n) =>
            event(id, round * 3 + n, { type: 'CUSTOM', name: 'n', value: round * 3 + n }),
          );
          const instance = instances[(index + round) % 2] as FrozenFunction;
          const response = await post(instance, id, records);
          expect([response.status, await response.clone().json()]).toEqual([
            200,
            expect.objectContaining({ accepted: 3 }),
          ]);
          ({ position } = await response.json());
          // the other instance deduplicates a repeat
          const again = await post(instances[(index + round + 1) % 2] as FrozenFunction, id, records);
          expect(await again.json()).toMatchObject({ accepted: 0, duplicates: 3 });
        }
      }),
    );
    const expected = Array.from({ length: rounds * 3 }, (_, index) => index + 1);
    for (const watcher of watchers) {
      await watcher.until(() => watcher.events.length >= ids.length * expected.length);
      await watcher.reach(position);
      for (const id of ids) {
        const events = watcher.events.flatMap(({ data }) => (data.sessionId === id ? data.event : []));
        // The server also reports silent agents if a round is slow.
        expect(events.filter(({ name }) => name === 'n').map(({ value }) => value)).toEqual(expected);
      }
      expect(watcher.wrongs).toEqual([]);
      watcher.close();
    }
    // no reader is left, so nothing runs
    await vi.waitFor(() => {
      for (const [index, { freezes }] of instances.entries()) expect(freezes).toBeGreaterThan(before[index] ?? 0);
    });
  });

  test('holds no lock while it is frozen', async () => {
    const [one, other] = instances;
    for (let seq = 1; seq <= 8; seq += 1) {
      const lines = Array.from({ length: 100 }, (_, index) =>
        record((seq - 1) * 100 + index + 1, {
          kind: 'log',
          agentId: 'v-logs',
          log: { level: 'info', component: 'c', message: `line ${index}` },
        }),
      );
      expect((await post(one, 'v-logs', lines)).status).toBe(200);
      const since = performance.now();
      expect(
        (await post(other, 'v-other', [event('v-other', seq, { type: 'CUSTOM', name: 'n', value: seq })])).status,
      ).toBe(200);
      expectWithin(performance.now() - since, 1_500, 'a write beside a frozen instance');
    }
  });

  test('delivers a command from one instance to a runner on the other, and loses no work when it ends', async () => {
    const [one, other] = instances;
    const id = 'v-command';
    expect((await post(one, id, [event(id, 1, { type: 'RUN_STARTED', threadId: id, runId: 'r' })])).status).toBe(200);
    const runner = await WireRunner.connect({ url: one.url, token: TOKEN }, id);
    const say = (text: string) =>
      fetch(`${other.url}/api/v1/sessions/${id}/messages`, {
        method: 'POST',
        headers: { ...bearer(), 'content-type': 'application/json' },
        body: JSON.stringify({ text, clientId: text }),
      });
    expect((await say('first')).status).toBe(202);
    expect(await runner.next('message')).toMatchObject({ body: { text: 'first' } });
    await one.kill9();
    expect((await say('second')).status).toBe(202);
    const again = await WireRunner.connect({ url: one.url, token: TOKEN }, id);
    onTestFinished(() => again.leave());
    const texts = [(await again.next('message')).body.text, (await again.next('message')).body.text];
    expect(texts).toEqual(['first', 'second']);
  });

  test('shows a lost runner within 30 s without an earlier request', async () => {
    const [one, other] = instances;
    const id = 'v-gone';
    const started = event(id, 1, { type: 'RUN_STARTED', threadId: id, runId: 'r' });
    expect((await post(one, id, [started])).status).toBe(200);
    const runner = await WireRunner.connect({ url: one.url, token: TOKEN }, id);
    expect(await stateOf(other, id)).toBe('working');
    // its connection breaks and the instance that noticed is frozen at once
    runner.leave();
    const since = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 25_000));
    await vi.waitFor(async () => expect(await stateOf(other, id)).not.toBe('working'), { interval: 500 });
    expectWithin(performance.now() - since, 30_000, 'the truth about a runner that is gone');
    expect(await stateOf(one, id)).toBe(await stateOf(other, id));
  });

  test('runs due work only for the cron secret', async () => {
    const [one] = instances;
    expect((await get(one, '/api/v1/cron', {})).status).toBe(401);
    expect((await get(one, '/api/v1/cron', bearer('another-secret-0123456789'))).status).toBe(401);
    const done = await get(one, '/api/v1/cron', bearer(CRON_SECRET));
    expect([done.status, await done.json()]).toEqual([200, expect.objectContaining({ status: 'done' })]);
    expect((await get(one, '/api/v1/sessions', bearer(CRON_SECRET))).status).toBe(403);
  });

  test('shows pages only to signed-in users', async () => {
    const [one] = instances;
    const page = await get(pages, '/', {});
    expect([page.status, page.headers.get('location')]).toEqual([307, '/signed-out']);
    const id = 'v-page';
    const named = event(id, 1, { type: 'CUSTOM', name: 'n', value: 1 });
    expect((await post(one, id, [named])).status).toBe(200);
    const signIn = await get(one, `/sign-in?token=${TOKEN}`, {});
    const cookie = signIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const shown = await get(pages, '/', { cookie });
    expect([shown.status, await shown.text()]).toEqual([200, expect.stringContaining(id)]);
  });
});
