import { readdirSync, renameSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Client, createClient } from '@libsql/client';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type LiveServer, startLiveServer } from '../support/live-server';

/** A running or killed server whose database file is replaced. */
async function running() {
  const server = await startLiveServer();
  onTestFinished(() => server.stop());
  const database = join(server.dataDir, 'interlude.db');
  return { server, database, log: `${database}-wal`, sender: new Sender(server) };
}

test.each([
  ['killed', 'SIGKILL'],
  ['stopped', 'SIGTERM'],
] as const)('a server serves a backup that replaces its open database once it is %s', async (_, signal) => {
  const { server, database, sender } = await running();
  await sender.send(20);
  const backup = join(server.dataDir, 'backup');
  await sqlite(database, (client) => client.execute({ sql: 'VACUUM INTO ?', args: [backup] }));
  await sender.send(20);
  renameSync(backup, database);
  await vi.waitFor(async () => expect(await sender.ready()).toBe(503));
  expect(server.output).toContain('was replaced by another');
  await server.signal(signal);
  await server.restart();
  expect(await sender.ready()).toBe(200);
  expect(await sender.sessions()).toEqual(upTo(20));
  const aside = readdirSync(server.dataDir).filter((name) => name.startsWith('interlude.db-wal-set-aside-'));
  expect(aside).toHaveLength(1);
  expect(server.output.split('\n').filter((line) => line.includes('set aside as'))).toHaveLength(1);
  // and continues from there
  await sender.send(5);
  await server.kill9();
  const count = await sqlite(database, (client) => client.execute('SELECT count(*) AS count FROM sessions'));
  expect(count.rows[0]?.count).toBe(25);
});

test('a server acknowledges nothing after another program has emptied its write-ahead log', async () => {
  const { server, log, sender } = await running();
  await sender.send(20);
  expect(await sender.ready()).toBe(200);
  truncateSync(log, 0);
  await vi.waitFor(async () => expect(await sender.ready()).toBe(503));
  expect(server.output).toMatch(/not ready: .*interlude\.db-wal was truncated by another program/);
  await expect(sender.send(1)).rejects.toThrow('503');
  await server.kill9();
  await server.restart();
  expect(await sender.ready()).toBe(200);
});

async function sqlite<Result>(path: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const client = createClient({ url: pathToFileURL(path).href });
  return work(client).finally(() => client.close());
}

/** Writes numbered sessions, one request each. */
class Sender {
  readonly #server: LiveServer;
  #seq = 0;

  constructor(server: LiveServer) {
    this.#server = server;
  }

  async send(count: number): Promise<void> {
    for (let sent = 0; sent < count; sent += 1) {
      this.#seq += 1;
      const record = {
        seq: 1,
        kind: 'event',
        agentId: 'a',
        sessionId: `session-${this.#seq}`,
        occurredAt: this.#seq,
        event: { type: 'CUSTOM', name: 'n', value: 'x'.repeat(2_000) },
      };
      const body = JSON.stringify({ producer: { id: `p${this.#seq}`, epoch: 1 }, records: [record] });
      const response = await this.#fetch('/api/v1/events', { method: 'POST', body });
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    }
  }

  async ready(): Promise<number> {
    return (await this.#fetch('/readyz')).status;
  }

  async sessions(): Promise<string[]> {
    const { sessions } = (await (await this.#fetch('/api/v1/sessions?limit=500')).json()) as {
      sessions: { id: string }[];
    };
    return sessions.map(({ id }) => id).sort((a, b) => numberOf(a) - numberOf(b));
  }

  #fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.#server.url}${path}`, { ...init, headers: { authorization: `Bearer ${this.#server.token}` } });
  }
}

const numberOf = (id: string) => Number(id.slice('session-'.length));
const upTo = (count: number) => Array.from({ length: count }, (_, index) => `session-${index + 1}`);
