import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bumpAccessVersion } from '@/lib/server/access/credential-rows';
import { makeSecret, textDigest } from '@/lib/server/access/secret';
import { type AccessStage, bearer, expectUnavailable, type Headers, secretOf } from '../support/access-stage';
import { FrameReader } from '../support/frames';
import {
  demotedPerson,
  ENDINGS,
  ENDINGS_OF_PEOPLE,
  endConnections,
  expectedEnds,
  openPlace,
  startStage,
  untilRefused,
} from '../support/open-connections';
import { expectWithin, resolvesWithin, slowdown } from '../support/timing';
import { startTypescript } from '../support/typescript-programs';

/** Every server on a database refuses an ended credential, and closes its connections, within this time. */
const WITHIN_MS = 2_000;

/** How a connection ended, if in time. */
function inTime(how: Promise<string>): Promise<string> {
  const withinMs = WITHIN_MS * slowdown();
  return Promise.race([how, new Promise<string>((resolve) => setTimeout(resolve, withinMs, 'not in time'))]);
}

describe.each([
  ['on the same server', false],
  ['on another server with the same file', true],
])('within two seconds, %s', (_, isSecond) => {
  test.each(Object.entries(ENDINGS_OF_PEOPLE))('closes an operator’s connections once %s', async (_ending, ending) => {
    expect(await endConnections(await openPlace(isSecond), ending, 'operator', inTime)).toEqual(
      expectedEnds('operator'),
    );
  });

  test.each(Object.entries(ENDINGS))('closes a runner’s connections once %s', async (_ending, ending) => {
    expect(await endConnections(await openPlace(isSecond), ending, 'runner', inTime)).toEqual(expectedEnds('runner'));
  });

  test('applies a person’s new role', async () => {
    const { end } = await demotedPerson(await openPlace(isSecond));
    await resolvesWithin(WITHIN_MS, end());
  });
});

test.each(Object.entries(ENDINGS_OF_PEOPLE))(
  'another server refuses a credential within two seconds once %s',
  async (_ending, ending) => {
    const { first, here } = await openPlace(true);
    const { headers, end } = await ending(first, 'operator');
    expect(await here.status('/sessions', { as: headers })).toBe(200);
    await end();
    await resolvesWithin(WITHIN_MS, untilRefused(here, headers));
  },
);

test('a server in another process closes the connections of a revoked credential within two seconds', async () => {
  const first = await startStage();
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

test('credentials are answered with 503 during a database outage, and accepted afterwards', async () => {
  await expectUnavailable(await startStage(), () => new Promise(() => {}));
});

describe('among very many credentials', () => {
  /** Inserts credentials directly into the database. */
  async function addCredentials(stage: AccessStage, count: number): Promise<Headers[]> {
    const { database } = stage.parts;
    const secrets = Array.from({ length: count }, () => makeSecret('token'));
    const rows = secrets.map((secret, index) => [`token-${index}`, textDigest(secret)]);
    await database.writes.run(async (transaction) => {
      await transaction.execute({
        sql: `INSERT INTO credentials (id, kind, hash, name, role, scope, created_at, last_used_at)
          SELECT value->>0, 'token', value->>1, 'one of many', 'viewer', '{"kind":"everything"}', 1, 1 FROM json_each(?)`,
        args: [JSON.stringify(rows)],
      });
      await bumpAccessVersion(transaction);
    });
    return secrets.map(bearer);
  }

  test('each of 10,000 is known, and revoked within two seconds', async () => {
    const stage = await startStage();
    const all = await addCredentials(stage, 10_000);
    for (const headers of all) expect(await stage.status('/me', { as: headers })).toBe(200);
    const stream = await stage.stream('/stream?topic=fleet', all[5_000] as Headers);
    await stream.frame('up-to-date');
    const since = performance.now();
    await stage.ask('/credentials/token-5000', { method: 'DELETE' });
    expect((await stream.end()).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'unauthorized' } });
    expectWithin(performance.now() - since, WITHIN_MS);
    expect(await stage.status('/me', { as: all[5_001] as Headers })).toBe(200);
  });

  test('a stream ends within two seconds of its expiry after many unknown tokens', async () => {
    const stage = await startStage();
    const expiresAt = Date.now() + 8_000;
    const { secret } = await stage.credential({ kind: 'embed', expiresAt });
    const stream = await stage.stream('/stream?topic=fleet', bearer(secret));
    await stream.frame('up-to-date');
    const { credentials } = stage.parts;
    // Unknown secrets must not evict known credentials from the cache.
    const strangers = Array.from({ length: 21_000 }, () => makeSecret('token'));
    for (const stranger of strangers) await credentials.find(stranger);
    const over = stream.end().then((frames) => JSON.stringify(frames.at(-1)?.data));
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, expiresAt - Date.now())));
    expect(await inTime(over)).toBe('{"reason":"unauthorized"}');
  });
});
