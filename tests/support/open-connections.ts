import type { Me } from '@interlude/protocol/access';
import { EVERYTHING } from '@interlude/protocol/scope';
import { expect, onTestFinished, vi } from 'vitest';
import { AccessStage, bearer, type Headers } from './access-stage';
import { type BusyAgent, busyAgent } from './busy-agent';
import { slowdown } from './timing';

/** Connections that a credential can hold open, and the ways in which a credential ends. */

/** The server where a credential ends and the one with its connections: the same, or a second one on the same file. */
interface Place {
  first: AccessStage;
  here: AccessStage;
  busy: BusyAgent;
  /** Hash of an attachment that takes several reads. */
  hash: string;
}

export async function startStage(options?: Parameters<typeof AccessStage.start>[0]): Promise<AccessStage> {
  const stage = await AccessStage.start(options);
  onTestFinished(() => stage.close());
  return stage;
}

export async function openPlace(isSecond: boolean, env: Record<string, string> = {}): Promise<Place> {
  const first = await startStage({ env });
  const busy = await busyAgent(first, 'a');
  await fillLog(first, busy.agentId);
  const { hash } = await first.ask<{ hash: string }>(`/sessions/${busy.sessionId}/attachments?name=b.txt`, {
    method: 'POST',
    body: new Uint8Array(4_000_000).fill(97),
    headers: { 'content-type': 'text/plain' },
  });
  return { first, busy, hash, here: isSecond ? await startStage({ dataDir: first.dataDir, env }) : first };
}

async function fillLog(stage: AccessStage, agentId: string): Promise<void> {
  const message = 'x'.repeat(1_000);
  const records = Array.from({ length: 800 }, (_, index) => ({
    seq: index + 1,
    kind: 'log',
    agentId,
    occurredAt: index,
    log: { level: 'info', component: 'c', message },
  }));
  for (const epoch of [1, 2, 3]) {
    await stage.ask('/events', {
      method: 'POST',
      body: { producer: { id: `${agentId}/long-${epoch}`, epoch: 1 }, records },
    });
  }
}

type Holder = 'operator' | 'runner';

/** Creates a credential. @returns its headers and a function that ends it */
type Ending = (first: AccessStage, holder: Holder) => Promise<{ headers: Headers; end(): Promise<unknown> }>;

const made = async (first: AccessStage, role: Holder) => {
  const { id, ...headers } = await first.token(role === 'runner' ? { role, agent: 'agent-a' } : { role });
  return { id, headers };
};

export const ENDINGS: Record<string, Ending> = {
  'an admin revokes it': async (first, holder) => {
    const { id, headers } = await made(first, holder);
    return { headers, end: () => first.ask(`/credentials/${id}`, { method: 'DELETE' }) };
  },
  'it expires': async (first, role) => {
    const scope = role === 'runner' ? ({ kind: 'agents', ids: ['agent-a'], prefixes: [] } as const) : EVERYTHING;
    // Leaves time to open connections.
    const expiresAt = Date.now() + 2_000 * slowdown();
    const { secret } = await first.credential({ role, scope, expiresAt });
    const untilExpiry = () => new Promise((resolve) => setTimeout(resolve, Math.max(0, expiresAt - Date.now())));
    return { headers: bearer(secret), end: untilExpiry };
  },
};

export const ENDINGS_OF_PEOPLE: Record<string, Ending> = {
  ...ENDINGS,
  'the credential that made it is revoked': async (first) => {
    const { id } = await made(first, 'operator');
    const { secret } = await first.credential({ kind: 'embed', role: 'operator', parentId: id });
    return { headers: bearer(secret), end: () => first.ask(`/credentials/${id}`, { method: 'DELETE' }) };
  },
  'the person signs out': async (first) => {
    const headers = await first.browser();
    return { headers, end: () => first.send('/sign-out', { method: 'POST', as: headers }) };
  },
};

/** Resolves with a description of how the connection ended. */
type Ended = () => Promise<string>;

interface Connection {
  of: Holder;
  /** Expected end when the credential ends. */
  ends: string;
  open(place: Place, as: Headers): Promise<Ended>;
}

const BYE = '["bye",{"reason":"unauthorized"}]';
/** Result for a truncated body. */
export const TRUNCATED = 'broken off';
/** Result for a complete body. */
export const COMPLETE = 'complete';
const api = '/api/v1';

export const CONNECTIONS: Record<string, Connection> = {
  'a stream of the dashboard': {
    of: 'operator',
    ends: BYE,
    open: ({ here, busy }, as) => openStream(here, `/stream?topic=fleet&topic=session:${busy.sessionId}`, as),
  },
  'a stream of a log': {
    of: 'operator',
    ends: BYE,
    open: ({ here, busy }, as) => openStream(here, `/stream?topic=logs:${busy.agentId}`, as),
  },
  'a stream of commands': {
    of: 'runner',
    ends: BYE,
    open: ({ here, busy }, as) => openStream(here, `/agents/${busy.agentId}/commands?runner=r&startedAt=1`, as),
  },
  'an AG-UI client': {
    of: 'operator',
    ends: COMPLETE,
    async open({ here, busy }, as) {
      const forwardedProps = { interlude: { followMs: 60_000 } };
      const body = { threadId: busy.sessionId, runId: 'r', messages: [], forwardedProps };
      return readSlowly(await here.send(`${api}/agui/${busy.agentId}/connect`, { method: 'POST', as, body }));
    },
  },
  'a slow download of a log': {
    of: 'operator',
    ends: TRUNCATED,
    open: async ({ here, busy }, as) =>
      readSlowly(await here.send(`${api}/agents/${busy.agentId}/logs/download`, { as })),
  },
  'a slow download of an attachment': {
    of: 'operator',
    ends: TRUNCATED,
    open: async ({ here, busy, hash }, as) =>
      readSlowly(await here.send(`${api}/attachments/${hash}?session=${busy.sessionId}`, { as })),
  },
};

async function openStream(stage: AccessStage, path: string, as: Headers): Promise<Ended> {
  const reader = await stage.stream(path, as);
  await reader.frame('up-to-date');
  return async () => {
    const last = (await reader.end()).at(-1);
    return JSON.stringify([last?.event, last?.data]);
  };
}

/** Delay between a slow reader's reads. */
const SLOWLY_MS = 300;

/** Reads the first chunk at once and the rest slowly. */
export async function readSlowly(response: Response): Promise<Ended> {
  if (response.status !== 200 || response.body === null) throw new Error(await response.text());
  const reader = response.body.getReader();
  expect((await reader.read()).done).toBe(false);
  return async () => {
    try {
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, SLOWLY_MS));
        if ((await reader.read()).done) return COMPLETE;
      }
    } catch {
      return TRUNCATED;
    }
  };
}

/** A holder's connections and their expected ends. */
export function expectedEnds(holder: Holder): Record<string, string> {
  const own = Object.entries(CONNECTIONS).filter(([, { of }]) => of === holder);
  return Object.fromEntries(own.map(([name, { ends }]) => [name, ends]));
}

/**
 * Opens all connections of a holder, ends its credential, and returns how each connection ended.
 *
 * @param limited applies a timeout
 */
export async function endConnections(
  place: Place,
  ending: Ending,
  holder: Holder,
  limited: (ended: Promise<string>) => Promise<string> = (ended) => ended,
): Promise<Record<string, string>> {
  const { headers, end } = await ending(place.first, holder);
  const own = Object.entries(CONNECTIONS).filter(([, { of }]) => of === holder);
  const opened: [string, Ended][] = [];
  for (const [name, { open }] of own) opened.push([name, await open(place, headers)]);
  await end();
  await untilRefused(place.here, headers);
  return Object.fromEntries(await Promise.all(opened.map(async ([name, ended]) => [name, await limited(ended())])));
}

/** Polls until a credential is refused. */
export function untilRefused(stage: AccessStage, headers: Headers): Promise<Response> {
  const look = async () => {
    const response = await stage.send('/api/v1/me', { as: headers });
    return response.status === 401 && response;
  };
  return vi.waitUntil(look, { interval: 20 });
}

/** A person who becomes a viewer on `end()`, which resolves once the connections' server has noticed. */
export async function demotedPerson({ first, here }: Place): Promise<{ headers: Headers; end(): Promise<void> }> {
  await first.parts.database.writes.run((transaction) =>
    transaction.execute(`INSERT INTO members (id, issuer, subject, name, role, created_at, last_sign_in_at)
      VALUES ('ada', 'https://id.example', 'ada', 'Ada', 'admin', 1, 1)`),
  );
  const { secret } = await first.credential({ kind: 'session', role: 'admin', memberId: 'ada', idleMs: 3_600_000 });
  const headers = { cookie: `interlude=${secret}`, 'sec-fetch-site': 'same-origin' };
  const end = async () => {
    await first.ask('/members/ada', { method: 'PUT', body: { role: 'viewer' } });
    await vi.waitUntil(async () => (await here.ask<Me>('/me', { as: headers })).role === 'viewer');
  };
  return { headers, end };
}
