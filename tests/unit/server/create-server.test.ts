import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createServer } from '@/lib/server/create-server';

const TOKEN = 'a-token-for-tests-0123456789';
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'interlude-server-'));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

const get = (path: string, token = TOKEN) =>
  new Request(`http://127.0.0.1${path}`, { headers: { host: '127.0.0.1', authorization: `Bearer ${token}` } });
/** A data folder that can't be created until this is called. */
function awayUntil(): { env: { INTERLUDE_TOKEN: string; INTERLUDE_DATA_DIR: string }; comeBack(): void } {
  const place = join(folder, 'data');
  writeFileSync(place, '');
  return { env: { INTERLUDE_TOKEN: TOKEN, INTERLUDE_DATA_DIR: place }, comeBack: () => rmSync(place) };
}

describe('a server whose database is unavailable at start', () => {
  test('starts its background work once the database is back, without a request', async () => {
    const { env, comeBack } = awayUntil();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const server = createServer(env);
    await server.start();
    comeBack();
    await vi.advanceTimersByTimeAsync(5_000);
    vi.useRealTimers();
    const file = join(env.INTERLUDE_DATA_DIR, 'interlude.db');
    await vi.waitFor(() => expect(existsSync(file)).toBe(true));
    await server.close();
  });

  test('reports that to authorized readers only, and answers the next request', async () => {
    const { env, comeBack } = awayUntil();
    const server = createServer(env);
    await server.start();
    expect((await server.handle(get('/api/v1/sessions'))).status).toBe(503);
    expect((await server.handle(get('/api/v1/sessions', 'another-token-of-enough-characters'))).status).toBe(401);
    expect((await server.handle(get('/healthz'))).status).toBe(200);
    comeBack();
    expect((await server.handle(get('/api/v1/sessions'))).status).toBe(200);
    await server.close();
  });
});

describe.each(['shared', 'perRequest'] as const)('a %s server with a setting that it refuses', (kind) => {
  test('names the setting in every response, but is alive', async () => {
    const server = createServer({ INTERLUDE_TOKEN: TOKEN, INTERLUDE_REDACT_ROLES: 'admin' }, kind);
    const cause = {
      error: { code: 'unavailable', message: expect.stringMatching(/^INTERLUDE_REDACT_ROLES contains /) },
    };
    for (const path of ['/readyz', '/api/v1/sessions']) {
      const response = await server.handle(get(path));
      expect({ status: response.status, body: await response.json() }).toEqual({ status: 503, body: cause });
    }
    expect((await server.handle(get('/healthz'))).status).toBe(200);
    expect(() => server.checkSettings()).toThrow('INTERLUDE_REDACT_ROLES');
    await server.close();
  });
});

describe('a closed server', () => {
  test('ends its streams with bye and accepts no more', async () => {
    const server = createServer({ INTERLUDE_TOKEN: TOKEN, INTERLUDE_DATA_DIR: folder });
    const streams = await Promise.all(
      ['/stream?topic=fleet', '/agents/a/commands?runner=r&startedAt=1'].map((path) =>
        server.handle(get(`/api/v1${path}`)),
      ),
    );
    await Promise.all([server.close(), server.close()]);
    for (const stream of streams) expect(await stream.text()).toContain('event: bye\ndata: {"reason":"shutdown"}');
    expect((await server.handle(get('/api/v1/stream?topic=fleet'))).status).toBe(503);
  });

  test('closes cleanly if it was never opened', async () => {
    await createServer({}).close();
  });
});
