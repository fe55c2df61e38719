import { once } from 'node:events';
import { createServer } from 'node:net';
import { unreachableReason } from '@interlude/runner/host/agent-http';
import { expect, onTestFinished, test } from 'vitest';

/** A server that accepts connections and never answers. */
async function mute() {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return {
    server,
    url: `http://user:secret@127.0.0.1:${(server.address() as { port: number }).port}/agent?key=secret`,
  };
}

test('returns null for a slow server that accepts connections', async () => {
  const { url } = await mute();
  expect(await Promise.all([unreachableReason(url, null), unreachableReason(url, 404)])).toEqual([null, null]);
});

test('names an absent server without the secrets in its address', async () => {
  const { server, url } = await mute();
  server.close();
  await once(server, 'close');
  expect(await unreachableReason(url, null)).toBe(
    `no answer at http://127.0.0.1:${new URL(url).port}/agent: ECONNREFUSED`,
  );
});

test('recognises a tunnel to an absent server', async () => {
  const { server, url } = await mute();
  server.on('connection', (socket) => socket.end());
  expect(await unreachableReason(url, null)).toMatch(/: it closes each connection$/);
});

test('recognises a gateway of an absent server', async () => {
  const { url } = await mute();
  expect(await unreachableReason(url, 502)).toBe(
    `no answer at http://127.0.0.1:${new URL(url).port}/agent: its gateway answers 502`,
  );
});
