import { request } from 'node:http';
import { request as requestSecurely } from 'node:https';
import { connect, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import { API_BASE } from '@interlude/protocol/version';
import { assert, assertMatch } from '../check';
import { custom, type FakeAgent, type ServerTarget, serverChecks } from './server-target';

/** Every route of the API, with a placeholder for each id. */
const ROUTES = `POST /events
GET /stream?topic=fleet
GET /sessions
GET /sessions/x
GET /sessions/x/transcript
GET /sessions/x/tasks
GET /sessions/x/delivery
GET /agents
GET /agents/x
GET /agents/x/commands
POST /agents/x/commands/y/ack
GET /agents/x/reply-obligations
GET /agents/x/logs
GET /agents/x/logs/download
PUT /agents/x/log-level
GET /inbox
POST /inbox/marks
GET /activity
GET /webhook
POST /sessions/x/messages
POST /sessions/x/interrupt
POST /sessions/x/requests/y
PUT /sessions/x/arrangement
DELETE /sessions/x
GET /no/such/route`
  .split('\n')
  .map((line) => line.split(' ') as [method: string, path: string]);

/** GET through node:http, because `fetch` sets Host and Sec-Fetch-Site itself. */
function rawGet(
  { server, timeout }: ServerTarget,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; cookies: string[]; text: string }> {
  const url = new URL(server.url + path);
  const send = url.protocol === 'https:' ? requestSecurely : request;
  return new Promise((resolve, reject) => {
    const sent = send(url, { headers, agent: false, signal: timeout.signal }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const cookies = response.headers['set-cookie'] ?? [];
        resolve({ status: response.statusCode ?? 0, cookies, text: `${Buffer.concat(chunks)}` });
      });
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });
}

export const SECRETS = serverChecks('secrets', '2, Access', {
  'every route, known or unknown, requires a valid credential': {
    todo: 'Authenticate before routing.',
    async run({ server }) {
      const expected = { status: 401, error: { code: 'unauthenticated' } };
      const credentials: Record<string, string>[] = [
        {},
        { authorization: 'Bearer not-the-token-at-all' },
        { cookie: 'interlude=forged' },
      ];
      for (const headers of credentials) {
        const used = Object.keys(headers)[0] ?? 'no credential';
        for (const [method, path] of ROUTES) {
          const { seen } = await server.send(path, { method, headers });
          assertMatch(`${method} ${path} with ${used}`, seen, expected);
        }
      }
    },
  },
  'a token in a URL grants no access, and no response repeats it': {
    todo: 'Accept the token in the header only, and repeat neither it nor query parameters.',
    async run({ server }) {
      const { token } = server.server;
      const paths = [`/sessions?token=${token}`, `/no/such/${token}`, `/stream?topic=fleet&access_token=${token}`];
      for (const path of paths) {
        const { status, text } = await server.send(path);
        assertMatch(path.replace(token, '…'), { status }, { status: 401 });
        assert(!text.includes(token), 'a response without the token', 'the response repeats it');
      }
      const headers = JSON.stringify([...(await server.get('/agents')).headers]);
      assert(!headers.includes(token), 'headers without the token', 'the headers repeat it');
    },
  },
  'only the health and readiness checks need no credential': {
    todo: 'Serve it without a credential.',
    async run({ server }) {
      for (const path of ['/healthz', '/readyz']) {
        const { status } = await server.send(path);
        assertMatch(path, { status }, { status: 200 });
      }
    },
  },
  'the operator’s cookie is not the token and does not work from another origin': {
    todo: 'Set an HttpOnly cookie derived from the token, and accept it from same-origin pages only.',
    async run({ agent, server }) {
      const { token } = server.server;
      const signedIn = await rawGet(server, `/sign-in?token=${encodeURIComponent(token)}`, {});
      const [set = ''] = signedIn.cookies;
      const cookie = set.split(';')[0] ?? '';
      assert(cookie !== '', 'a cookie from /sign-in', signedIn.status);
      assert(!set.includes(token), 'a cookie that is not the token', 'the token');
      assert(/httponly/i.test(set), 'an HttpOnly cookie', set.replace(cookie, '…'));
      await agent.emit(custom('x'));
      const commands = `/agents/${encodeURIComponent(agent.id)}/commands`;
      const reads: [path: string, site: string, status: number, todo?: string][] = [
        ['/sessions', 'same-origin', 200],
        ['/sessions', 'cross-site', 403, 'Refuse it as cross_origin.'],
        ['/sessions', 'same-site', 403, 'Refuse it as cross_origin.'],
        [commands, 'same-origin', 401, 'Accept only the token from runners.'],
      ];
      for (const [path, site, expected, todo] of reads) {
        const { status } = await rawGet(server, API_BASE + path, { cookie, 'sec-fetch-site': site });
        assertMatch(`GET ${path} from ${site}`, { status }, { status: expected }, todo);
      }
    },
  },
  'a request for another host name is misdirected, whatever its credential': {
    todo: 'Answer only to the server’s own host names, against DNS rebinding.',
    async run({ server }) {
      const headers = { ...server.authorized, host: 'attacker.example' };
      const { status, text } = await rawGet(server, `${API_BASE}/sessions`, headers);
      const code = /"code":"(\w+)"/.exec(text)?.[1] ?? null;
      assertMatch('the response', { status, code }, { status: 421, code: 'misdirected_host' });
    },
  },
});

const STALLED_READERS = 20;
/** Generous, because the checks also run on busy machines. */
const MAX_LATENCY_MS = 5_000;
const BATCHES = 30;
const BATCH_TEXT = 'x'.repeat(40_000);
const LINE = 'x'.repeat(50_000);

/** Connections that open a stream and never read it. */
async function stalledReaders({ server }: ServerTarget, agent: FakeAgent): Promise<Socket[]> {
  const { hostname, port, protocol, host } = new URL(server.url);
  const isSecure = protocol === 'https:';
  const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || (isSecure ? 443 : 80)) };
  const path = `${API_BASE}/stream?topic=${encodeURIComponent(`session:${agent.sessionId}`)}&after=0`;
  const head = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${server.token}\r\n\r\n`;
  return await Promise.all(
    Array.from({ length: STALLED_READERS }, async () => {
      const socket = isSecure ? connectSecurely({ ...address, servername: address.host }) : connect(address);
      socket.on('error', () => socket.destroy());
      socket.pause();
      await new Promise<void>((resolve) => socket.write(head, () => resolve()));
      return socket;
    }),
  );
}

/** Records the longest duration of several calls, in milliseconds. */
class Slowest {
  ms = 0;

  async measure(work: Promise<unknown>): Promise<void> {
    const startedAt = performance.now();
    await work;
    this.ms = Math.max(this.ms, Math.round(performance.now() - startedAt));
  }

  assertWithinBound(): void {
    assert(this.ms < MAX_LATENCY_MS, `every request within ${MAX_LATENCY_MS} ms`, `${this.ms} ms`);
  }
}

export const NEVER_IN_THE_WAY = serverChecks('never in the way', '8, Invariants, 12', {
  'twenty stalled readers delay neither records nor other readers': {
    todo: 'Disconnect a reader that does not read its backlog, and wait for none.',
    async run({ agent, server }) {
      await agent.emit(custom('x'));
      const reader = await agent.stream();
      const stalled = await stalledReaders(server, agent);
      try {
        const slowest = new Slowest();
        for (let index = 1; index <= BATCHES; index += 1) {
          await slowest.measure(agent.emit(custom('conformance:filler', { at: index, filler: BATCH_TEXT })));
        }
        const hasAll = () => reader.named('session-event').length >= BATCHES;
        await server.waitFor('every event at the reader that reads', hasAll);
        await slowest.measure(server.send('/healthz'));
        slowest.assertWithinBound();
      } finally {
        for (const socket of stalled) socket.destroy();
        reader.close();
      }
    },
  },
  'the largest accepted request delays no other request': {
    todo: 'Yield to other requests while a large one is stored.',
    async run({ server }) {
      const [large, small] = [server.agent('large'), server.agent('small')];
      await small.emit(custom('x'));
      const records = Array.from({ length: Math.floor((MAX_REQUEST_BYTES * 0.9) / LINE.length) }, () =>
        large.event(custom('conformance:filler', { line: LINE })),
      );
      let isStored = false;
      const storing = large.outbox.send(...records).finally(() => {
        isStored = true;
      });
      const slowest = new Slowest();
      while (!isStored) await slowest.measure(small.emit(custom('x')));
      await storing;
      slowest.assertWithinBound();
    },
  },
  'pending replies of an unknown agent are an empty list': {
    why: '6, Read models',
    todo: 'Return an empty list for an unknown agent.',
    async run({ server }) {
      const body = await server.read(`/agents/${server.prefix}-unheard/reply-obligations`);
      assertMatch('the pending replies of an unknown agent', body, { obligations: [] });
    },
  },
});
