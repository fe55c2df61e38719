import { afterAll, beforeAll, expect, test } from 'vitest';
import { Guesser } from '../support/guesser';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { expectWithin } from '../support/pace';

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

test('answers 11 of 12 right requests within a second of 260 wrong ones in flight from the same address', async () => {
  const guesser = new Guesser(server.url, 260);
  const tried = await guesser.try(server.token, 12).finally(() => guesser.stop());
  expect(tried.map(({ status }) => status)).toEqual(tried.map(() => 200));
  const times = tried.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  expectWithin(times[10] ?? Number.POSITIVE_INFINITY, 1_000);
});
