import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type WorkerServer, workerServer } from '../support/server-target';
import { ensureWorkerd } from '../support/workerd.mjs';
import { sharedServer } from './contract';
import { describeIngestContract } from './ingest-contract';
import { describeLogLevelContract } from './log-level-contract';
import { describeObligationsContract } from './obligations-contract';
import { describeReadModelsContract } from './read-models-contract';
import { describeStreamContract } from './stream-contract';

/** The handlers without Node, where no request may use I/O objects of another. */
const suites = 'missing' in ensureLibsqlServer() || 'missing' in ensureWorkerd() ? describe.skip : describe;
let libsql: ReturnType<typeof startLibsqlServer> | undefined;
const databaseUrl = async () => {
  libsql ??= startLibsqlServer();
  return (await libsql).url;
};
// Stops after the servers that read from it: hooks run last to first.
afterAll(async () => (await libsql)?.stop());

const shared = sharedServer(async () => workerServer(await databaseUrl(), 'today'));

// The slowest suites run on other hosts only: the host makes no difference to them.
suites('in workerd', () => {
  describeIngestContract('workerd', shared);
  describeStreamContract('workerd', shared);
  describeReadModelsContract('workerd', shared);
  describeLogLevelContract('workerd', shared);
  describeObligationsContract('workerd', shared);

  test('logged no error without an error response', async () => {
    expect((await shared()).said()).toBe('');
  });
});

suites('a worker', () => {
  let target: WorkerServer;

  beforeAll(async () => {
    target = await workerServer(await databaseUrl(), 'strict');
  });
  afterAll(() => target?.close());

  const own = (id: string, seq: number) =>
    record(seq, { agentId: id, sessionId: id, event: { type: 'CUSTOM', name: 'marker', value: seq } });
  const seqsOf = (frames: readonly { event: string; data: unknown }[]) =>
    frames.flatMap(({ event, data }) => (event === 'session-event' ? [(data as { seq: number }).seq] : []));

  test('signs in with the link, and recognizes the cookie in the next request', async () => {
    const link = await target.send(`/sign-in?token=${target.token}`);
    expect(link.status).toBe(303);
    const cookie = link.headers.get('set-cookie')?.split(';')[0] ?? '';
    const headers = { cookie, 'sec-fetch-site': 'same-origin' };
    expect((await target.send('/api/v1/sessions', { headers })).status).toBe(200);
    expect((await target.send('/api/v1/sessions')).status).toBe(401);
  });

  test('says bye before the host closes a stream, and resumes where that stream ended', async () => {
    await ingest(target, [own('bye', 1)], 1, 'bye');
    const brief = await workerServer(await databaseUrl(), 'strict', { INTERLUDE_STREAM_MAX_SECONDS: '2' });
    const reader = await brief.stream('topic=session:bye&after=0');
    await reader.frame('up-to-date');
    // Another request posts, which shares nothing with the stream.
    await ingest(target, [own('bye', 2)], 1, 'bye');
    const frames = await reader.end();
    expect(seqsOf(frames)).toEqual([1, 2]);
    expect(frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'planned' } });
    expect(brief.said()).toBe('');
    await brief.close();
    await ingest(target, [own('bye', 3)], 1, 'bye');
    const last = frames.findLast(({ id }) => id !== undefined)?.id ?? '';
    const next = await target.stream('topic=session:bye', { 'last-event-id': last });
    await next.frame('up-to-date');
    expect(seqsOf(next.frames)).toEqual([3]);
  });

  test('answers concurrent requests that share no I/O objects', async () => {
    const ids = Array.from({ length: 8 }, (_, index) => `at-once-${index}`);
    await Promise.all(ids.map((id) => ingest(target, [own(id, 1)], 1, id)));
    const readers = await Promise.all(ids.map((id) => target.stream(`topic=session:${id}&topic=fleet&after=0`)));
    const paths = ['/sessions', '/agents', '/agents/at-once-0/logs', '/sessions/at-once-1/transcript', '/inbox'];
    const answers = await Promise.all([
      ...ids.map(async (id) => (await ingest(target, [own(id, 2), own(id, 3)], 1, id)).accepted),
      ...paths.map(async (path) => (await target.get(`/api/v1${path}`)).status),
    ]);
    expect(answers).toEqual([...ids.map(() => 2), ...paths.map(() => 200)]);
    for (const reader of readers) {
      const frames = await reader.until((all) => seqsOf(all).length === 3);
      expect(seqsOf(frames)).toEqual([1, 2, 3]);
      await reader.cancel();
    }
  });

  test('throttles guessed tokens', async () => {
    const guess = () => target.send('/api/v1/sessions', { headers: { authorization: 'Bearer of-somebody-else-0123' } });
    // The first attempts are free.
    for (const _ of [1, 2]) {
      const guesses = await Promise.all(Array.from({ length: 30 }, guess));
      expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([401]));
    }
    expect((await target.get('/api/v1/sessions')).status).toBe(200);
  });

  test('logged no error without an error response', () => {
    expect(target.said()).toBe('');
  });
});
