import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FrameReader } from '../support/frames';
import { ingest, record } from '../support/ingest-target';
import { apiPaths, type ServerTarget } from '../support/server-target';

const AGENT = 'reader';
const SESSION = 'read';
const KNOWN = { agentId: AGENT, sessionId: SESSION, taskId: 't1', requestId: 'q1', messageId: 'm1', commandId: 'c1' };

/** Queries of routes that require one. */
const QUERIES: Record<string, string[]> = {
  '/stream': ['?topic=fleet', `?topic=session:${SESSION}&topic=logs:${AGENT}&after=0`, '?topic=fleet&after=99999999'],
  '/turn-at': ['?at=1795170000001'],
  '/logs': ['', '?q=line', '?regex=l.ne&level=warn', '?around=3'],
  '/download': ['?q=line'],
  '/transcript': ['', '?limit=1'],
  '/sessions': ['', '?limit=1'],
};

/** No GET changes a row, except a runner's own command stream, by which it connects, and a sign-in link. */
export function describeReadsContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`GET, ${name}`, () => {
    let target: ServerTarget;
    let cookie = '';

    beforeAll(async () => {
      target = await makeTarget();
      const signIn = await target.send(`/sign-in?token=${target.token}`);
      cookie = signIn.headers.get('set-cookie')?.split(';')[0] ?? '';
      await seed();
    });
    afterAll(() => target.close());

    /** Creates everything a read could affect: messages, requests, failures and parked records. */
    async function seed(): Promise<void> {
      const custom = (event: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name: event, value });
      const events: AgUiEvent[] = [
        { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'user' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'Owed' },
        { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
        { type: 'RUN_STARTED', threadId: SESSION, runId: 'r1', metadata: { interlude: { userMessageIds: [] } } },
        custom('task:started', { task_id: 't1', description: 'Poll' }),
        custom('request:opened', { request_id: 'q1', kind: 'permission', tool_name: 'Bash', input: { command: 'ls' } }),
        { type: 'TEXT_MESSAGE_START', messageId: 'm2', role: 'assistant' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm2', delta: 'half a te' },
      ];
      const about = { agentId: AGENT, sessionId: SESSION };
      const log = (level: string, component: string) => ({ kind: 'log', log: { level, component, message: 'a line' } });
      const records = [
        ...events.map((event) => ({ event })),
        log('info', 'runner'),
        log('fatal', 'hook:stop'),
        { kind: 'status', status: { kind: 'claude', logLevel: 'info' } },
        { kind: 'nonsense' },
      ];
      await ingest(
        target,
        records.map((fields, index) => record(index + 1, { ...about, ...fields })),
        1,
        AGENT,
      );
      const ask = async (method: string, path: string, body: object) => {
        const headers = { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' };
        const response = await target.send(path, { method, headers, body: JSON.stringify(body) });
        expect([path, response.status]).toEqual([path, 202]);
      };
      await ask('POST', `/api/v1/sessions/${SESSION}/messages`, { text: 'It waits', clientId: 'c' });
      await ask('POST', `/api/v1/sessions/${SESSION}/requests/q1`, { behavior: 'deny' });
      await ask('PUT', `/api/v1/agents/${AGENT}/log-level`, { level: 'debug', ttlSeconds: 600 });
    }

    async function readsOf(ids: Record<string, string>): Promise<string[]> {
      const api = apiPaths(ids).flatMap((path) => {
        const queries = Object.entries(QUERIES).find(([end]) => path.endsWith(end))?.[1] ?? [''];
        return queries.map((query) => `${path}${query}`);
      });
      const { agentId = 'id', sessionId = 'id' } = ids;
      const pages = ['/', '/agents', `/agents/${agentId}`, `/agents/${agentId}/logs`, `/sessions/${sessionId}`];
      const others = ['/healthz', '/readyz', '/sign-in', '/signed-out'];
      return [...api, ...pages, ...others];
    }

    /** Reads like a browser or program. A stream is read until it is idle. */
    async function read(path: string, headers: Record<string, string>): Promise<number> {
      const response = await target.send(path, { headers });
      if (response.headers.get('content-type')?.startsWith('text/event-stream') && response.body !== null) {
        const reader = new FrameReader(response.body);
        await reader.until((frames) => frames.some(({ event }) => (event as string) === 'up-to-date'));
        await reader.cancel();
      } else await response.text();
      return response.status;
    }

    test('changes no row with cookie or token, for known and unknown resources', async () => {
      const callers = {
        cookie: { cookie, 'sec-fetch-site': 'same-origin' },
        'a typed address': { cookie, 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' },
        'another site': { cookie, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
        token: { authorization: `Bearer ${target.token}` },
      };
      for (const [caller, headers] of Object.entries(callers)) {
        for (const ids of [KNOWN, {}]) {
          const before = await target.dump();
          for (const path of await readsOf(ids)) {
            const isOwnStream = caller === 'token' && path.endsWith('/commands');
            if (isOwnStream) continue;
            expect([caller, path, (await read(path, headers)) < 500]).toEqual([caller, path, true]);
          }
          expect([caller, ids, await target.dump()]).toEqual([caller, ids, before]);
        }
      }
    });

    test('neither connects nor fences a runner with a cookie or from another site', async () => {
      const path = `/api/v1/agents/${AGENT}/commands`;
      const own = await target.get(`${path}?runner=own&startedAt=1`);
      const reader = new FrameReader(own.body as ReadableStream<Uint8Array>);
      await reader.until((frames) => frames.some(({ event }) => (event as string) === 'up-to-date'));
      const agent = async () => (await (await target.get(`/api/v1/agents/${AGENT}`)).json()).agent;
      expect(await agent()).toMatchObject({ connection: 'connected', runnerId: 'own' });
      for (const site of ['same-origin', 'same-site', 'cross-site', 'none', null]) {
        const headers = { cookie, ...(site === null ? {} : { 'sec-fetch-site': site }) };
        const response = await target.send(`${path}?runner=evil&startedAt=9999999999999`, { headers });
        expect([site, response.status]).toEqual([site, 401]);
      }
      expect(await agent()).toMatchObject({ connection: 'connected', runnerId: 'own' });
      await reader.cancel();
    });
  });
}
