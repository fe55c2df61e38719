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
  [
    'is behind a gateway that returns a page',
    (_, response) => response.setHeader('content-type', 'text/html').end(PAGE),
  ],
  ['is behind a gateway that labels its page JSON', (_, response) => response.writeHead(502, JSON_TYPE).end(PAGE)],
  ['is behind a gateway with an empty JSON object', (_, response) => response.writeHead(502, JSON_TYPE).end('null')],
  ['sends no response', (_, response) => response.writeHead(200, JSON_TYPE).end()],
  ['sends no content', (_, response) => response.writeHead(204).end()],
  ['sends half a response', (_, response) => response.writeHead(200, JSON_TYPE).end('{"baton":null,"base_url":')],
  ['sends another response', (_, response) => response.writeHead(200, JSON_TYPE).end('{"status":"ok"}')],
  ['sends a word', (_, response) => response.writeHead(200, JSON_TYPE).end('"ok"')],
];

test.each(broken)('a request is retried when a server %s, because its outcome is unknown', async (_, answers) => {
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

test.each(silent)('a server that %s is unavailable', async (_, answers) => {
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

test('a write request asks for an uncompressed response, since compressing few bytes costs more than sending them', async () => {
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
