import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { databaseErrorCode, databaseFailure } from '@/db/database-error';
import { connect } from '@/db/open-server';
import { isBroken } from '@/db/optimistic-transaction';

async function serverThat(answers: RequestListener) {
  const server = createServer(answers).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connection = connect(
    { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, authToken: undefined },
    200,
  );
  onTestFinished(() => {
    connection.close();
    server.closeAllConnections();
    server.close();
  });
  return connection.server;
}

const PAGE = '<!doctype html><title>Please wait</title>';
const JSON_TYPE = { 'content-type': 'application/json' };

const silent: [string, RequestListener][] = [
  ['says nothing', () => {}],
  [
    'begins an answer and says no more',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"baton":null,');
    },
  ],
];

const broken: [string, RequestListener][] = [
  [
    'breaks off its answer',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"baton":null,', () => response.destroy());
    },
  ],
  ['is behind a gateway that has lost it', (_, response) => response.writeHead(502).end('Bad Gateway')],
  ['is behind a gateway that shows a page', (_, response) => response.setHeader('content-type', 'text/html').end(PAGE)],
  ['is behind a gateway that calls its page JSON', (_, response) => response.writeHead(502, JSON_TYPE).end(PAGE)],
  ['is behind a gateway whose JSON says nothing', (_, response) => response.writeHead(502, JSON_TYPE).end('null')],
  ['answers nothing', (_, response) => response.writeHead(200, JSON_TYPE).end()],
  ['has no content', (_, response) => response.writeHead(204).end()],
  ['answers by half', (_, response) => response.writeHead(200, JSON_TYPE).end('{"baton":null,"base_url":')],
  ['answers something else', (_, response) => response.writeHead(200, JSON_TYPE).end('{"status":"ok"}')],
  ['answers a word', (_, response) => response.writeHead(200, JSON_TYPE).end('"ok"')],
];

test.each(broken)('of a server that %s, nobody knows what it has done: it is asked again', async (_, answers) => {
  const server = await serverThat(answers);
  const held = async () => (await server.transaction('write')).batch(['SELECT 1']);
  for (const ask of [
    () => server.batch(['SELECT 1'], 'write'),
    () => server.batch(['SELECT 1'], 'read'),
    () => server.trial(['SELECT 1']),
    held,
  ]) {
    const error = await ask().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect([databaseErrorCode(error), isBroken(error)]).toEqual([expect.any(String), true]);
    expect(databaseFailure(error)).toMatchObject({ code: 'unavailable', headers: { 'retry-after': '1' } });
  }
});

test.each(silent)('a server that %s is given up, as one that can’t be reached', async (_, answers) => {
  const server = await serverThat(answers);
  for (const ask of [() => server.batch(['SELECT 1'], 'read'), () => server.trial(['SELECT 1'])]) {
    const error = await ask().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect([databaseErrorCode(error), isBroken(error)]).toEqual(['ETIMEDOUT', true]);
    expect(databaseFailure(error)).toMatchObject({ code: 'unavailable' });
  }
});

test('what is asked in order to write is answered as it is: to compress a few words costs both sides more than the line', async () => {
  const asked: unknown[] = [];
  const server = await serverThat(({ headers }, response) => {
    asked.push(headers['accept-encoding']);
    response.writeHead(400).end();
  });
  for (const ask of [
    server.batch(['SELECT 1'], 'read'),
    server.batch(['SELECT 1'], 'write'),
    server.trial(['SELECT 1']),
  ])
    await expect(ask).rejects.toThrow();
  expect(new Set(asked)).toEqual(new Set(['identity']));
});
