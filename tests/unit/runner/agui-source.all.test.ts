import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startAgUiSource } from '../../support/agui-stage';

test('AgUiSource refuses a message after an endless error response of five seconds', async () => {
  const server = createServer((request, response) => {
    response.writeHead(request.method === 'POST' ? 500 : 404, { 'content-type': 'text/html' });
    if (request.method === 'POST') response.write('<h1>Broken</h1>');
    else response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const { say } = await startAgUiSource({ url });
  expect(await say('one')).toMatchObject({
    state: 'failed',
    reason: expect.stringContaining(`${url} answered 500: <h1>Broken</h1>`),
  });
});
