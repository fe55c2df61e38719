import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { abortableFetch } from '@interlude/protocol/abortable-fetch';
import { expect, onTestFinished, test } from 'vitest';
import { seededRandom } from '../../support/random';

const REQUESTS = 1_500;
const AT_ONCE = 40;

test('every request settles by its deadline, however much of a compressed body has arrived', async () => {
  const random = seededRandom('abortable-fetch');
  const noise = randomBytes(100_000).toString('base64');
  const body = gzipSync(noise);
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': body.length });
    const cut = random.between(0, body.length);
    response.write(body.subarray(0, cut));
    setTimeout(() => response.end(body.subarray(cut)), random.between(0, 120));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  let [begun, settled] = [0, 0];
  const request = async (signal: AbortSignal) => {
    const response = await abortableFetch(url, { signal });
    return [response.url, (await response.text()).length];
  };
  expect(await request(new AbortController().signal)).toEqual([url, noise.length]);
  const line = async () => {
    while (begun++ < REQUESTS) {
      // A body arrives whole, or the request fails.
      const answer = await request(AbortSignal.timeout(random.between(40, 120))).catch(() => null);
      if (answer !== null) expect(answer).toEqual([url, noise.length]);
      settled += 1;
    }
  };
  for (let index = 0; index < AT_ONCE; index += 1) void line();
  await expect.poll(() => settled, { interval: 50 }).toBe(REQUESTS);
});
