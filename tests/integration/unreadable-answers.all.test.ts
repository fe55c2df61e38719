import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { databaseAt } from '../support/database';
import { type InProcessTarget, ingest, inProcessTarget, marker, record, sendEvents } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { seededRandom } from '../support/random';
import { scaled } from '../support/timeouts';

/** A libSQL server behind a gateway that replaces responses with its own. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;

/** Of each of four writers. */
const BATCHES = scaled(12, 2_000);

const PAGE = '<!doctype html><title>Please wait</title>';

async function gatewayTo(target: string, random: () => number) {
  let share = 0;
  let spoiled = 0;
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const { method = 'GET', url = '/', headers } = request;
    const { authorization, 'content-type': type } = headers;
    const sent = { ...(authorization && { authorization }), ...(type && { 'content-type': type }) };
    const isSpoiled = method === 'POST' && random() < share;
    if (isSpoiled) spoiled += 1;
    // Half of the spoiled requests take effect.
    const isForwarded = !isSpoiled || random() < 0.5;
    const body = parts.length > 0 ? Buffer.concat(parts) : undefined;
    const answer = isForwarded ? await fetch(new URL(url, target), { method, headers: sent, body }) : null;
    const text = (await answer?.text()) ?? '{"baton":null,"base_url":null,"results":[]}';
    const json = { 'content-type': 'application/json' };
    if (!isSpoiled) response.writeHead(answer?.status ?? 200, json).end(text);
    else {
      const kinds = [
        () => response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE),
        () => response.writeHead(200).end(),
        () => response.writeHead(200, json).end(text.slice(0, text.length >> 1)),
        () => response.writeHead(502, json).end(PAGE),
      ];
      kinds[Math.floor(random() * kinds.length)]?.();
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spoil: (now: number) => {
      share = now;
    },
    get spoiled() {
      return spoiled;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

suites('a libSQL server with responses spoiled by a gateway', () => {
  let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
  let gateway: Awaited<ReturnType<typeof gatewayTo>>;
  let target: InProcessTarget;
  const rows = async (sql: string) => (await target.database.reader.execute(sql)).rows.map((row) => ({ ...row }));
  beforeAll(async () => {
    libsql = await startLibsqlServer();
    gateway = await gatewayTo(libsql.url, seededRandom('unreadable-answers').next);
    target = await inProcessTarget(Date.now, Date.now, () => databaseAt(gateway.origin));
  });
  afterAll(async () => {
    await target?.close();
    gateway?.close();
    await libsql?.stop();
  });

  test('ingests each record once, quarantines none, and returns when to retry', async () => {
    gateway.spoil(0.3);
    const statuses = new Set<number>();
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let batch = 0; batch < BATCHES; batch += 1) {
        const ids = { agentId: `a${writer}`, sessionId: `s${writer}` };
        const records = [1, 2, 3].map((at) => marker(3 * batch + at, ids));
        for (let status = 0; status !== 200; ) {
          const response = await sendEvents(target, { producer: { id: `p${writer}`, epoch: 1 }, records });
          status = response.status;
          statuses.add(status);
          expect([200, 503]).toContain(status);
          if (status === 503) expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
        }
      }
    });
    await Promise.all(writers);
    gateway.spoil(0);
    expect(gateway.spoiled).toBeGreaterThan(10);
    expect(statuses).toEqual(new Set([200, 503]));
    expect(await rows('SELECT code FROM quarantine')).toEqual([]);
    const stored = await rows(
      `SELECT session_id, payload->>'value' AS value FROM events WHERE payload->>'name' = 'marker' ORDER BY session_id, position`,
    );
    const each = 3 * BATCHES;
    expect(stored).toEqual(
      Array.from({ length: 4 * each }, (_, index) => ({
        session_id: `s${Math.floor(index / each)}`,
        value: (index % each) + 1,
      })),
    );
  });

  test('quarantines a record that it refuses, and not the request beside it', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => logged.mockRestore());
    await target.database.writes.run((transaction) =>
      transaction.execute(
        `CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.payload LIKE '%poison%' BEGIN SELECT RAISE(ABORT, 'refused'); END`,
      ),
    );
    const custom = (seq: number, name: string, value: unknown) =>
      record(seq, { agentId: 'asks', sessionId: 'asked', event: { type: 'CUSTOM', name, value } });
    const response = await ingest(
      target,
      [
        custom(1, 'request:opened', { request_id: 'q1', tool_name: 'Bash', input: { command: 'ls' } }),
        custom(2, 'poison', 2),
        custom(3, 'marker', 3),
      ],
      1,
      'asks',
    );
    expect(response).toMatchObject({ ackedSeq: 3, accepted: 2, rejected: [{ seq: 2, code: 'not_storable' }] });
    expect(logged.mock.calls.flat().join()).toContain('the database refused a record');
  });
});
