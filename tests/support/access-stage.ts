import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditPage, NewToken, NewTokenRequest, SignInCode } from '@interlude/protocol/access';
import { expect, vi } from 'vitest';
import { GENESIS_HASH, hashOf } from '@/lib/server/access/audit';
import { addCredential, type NewCredential } from '@/lib/server/access/credential-rows';
import { createServer, type Server } from '@/lib/server/create-server';
import type { ServerParts } from '@/lib/server/server-parts';
import { createMigratedFile } from './database';
import { FrameReader } from './frames';

const OWNER_TOKEN = 'the-owner-of-this-test-0123456789';

/** Request headers, including the sender's credential. */
export type Headers = Record<string, string>;

export interface RequestOptions {
  method?: string;
  as?: Headers;
  /** Sent as JSON unless it is bytes. */
  body?: unknown;
  headers?: Headers;
}

/** A complete server in this process, with helpers that create credentials and send requests. */
export class AccessStage {
  readonly server: Server;
  readonly parts: ServerParts;
  readonly dataDir: string;
  readonly #keeps: boolean;
  readonly #readers: FrameReader[] = [];

  private constructor(server: Server, parts: ServerParts, dataDir: string, keeps: boolean) {
    this.server = server;
    this.parts = parts;
    this.dataDir = dataDir;
    this.#keeps = keeps;
  }

  /** @param dataDir an existing data directory to share with another server; not removed on close */
  static async start({ dataDir, env = {} }: { dataDir?: string; env?: Headers } = {}): Promise<AccessStage> {
    const folder = dataDir ?? (await mkdtemp(join(tmpdir(), 'interlude-access-')));
    if (dataDir === undefined && env.INTERLUDE_DATABASE_URL === undefined) {
      await createMigratedFile(join(folder, 'interlude.db'));
    }
    const server = createServer({ INTERLUDE_TOKEN: OWNER_TOKEN, INTERLUDE_DATA_DIR: folder, ...env });
    return new AccessStage(server, await server.parts(), folder, dataDir !== undefined);
  }

  readonly owner: Headers = bearer(OWNER_TOKEN);

  send(path: string, { method = 'GET', as = this.owner, body, headers = {} }: RequestOptions = {}): Promise<Response> {
    const isRaw = body === undefined || body instanceof Uint8Array;
    const all = { host: '127.0.0.1:4319', ...(isRaw ? {} : { 'content-type': 'application/json' }), ...as, ...headers };
    const init = { method, headers: all, body: isRaw ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) };
    return this.server.handle(new Request(`http://127.0.0.1:4319${path}`, init));
  }

  /** @throws Error with the response body unless the response is 2xx */
  async ask<Model>(path: string, sent: RequestOptions = {}): Promise<Model> {
    const response = await this.send(`/api/v1${path}`, sent);
    const text = await response.text();
    if (!response.ok) throw new Error(`${sent.method ?? 'GET'} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Model;
  }

  async status(path: string, sent: RequestOptions = {}): Promise<number> {
    const response = await this.send(`/api/v1${path}`, sent);
    await response.body?.cancel().catch(() => {});
    return response.status;
  }

  /** Opens a stream; throws if the server refuses. */
  async stream(path: string, as: Headers, sent: RequestOptions = {}): Promise<FrameReader> {
    const response = await this.send(`/api/v1${path}`, { as, ...sent });
    if (response.status !== 200 || response.body === null) throw new Error(await response.text());
    const reader = new FrameReader(response.body);
    this.#readers.push(reader);
    return reader;
  }

  /** Creates an API token as an admin does. */
  async token(made: Partial<NewTokenRequest>): Promise<Headers & { id: string }> {
    const { token, credential } = await this.ask<NewToken>('/tokens', { method: 'POST', body: made });
    return { ...bearer(token), id: credential.id };
  }

  /** Inserts any credential, backdated if needed. */
  async credential(fields: Partial<NewCredential>): Promise<{ secret: string; id: string }> {
    const { database, now, credentials } = this.parts;
    const { secret, credential } = await database.writes.run((transaction) =>
      addCredential(transaction, {
        kind: 'token',
        name: 'made by a test',
        role: 'viewer',
        scope: { kind: 'everything' },
        now: now(),
        expiresAt: null,
        ...fields,
      }),
    );
    await credentials.invalidate();
    return { secret, id: credential.id };
  }

  async code(as: Headers = this.owner): Promise<string> {
    return (await this.ask<SignInCode>('/sign-in-codes', { method: 'POST', as })).code;
  }

  /** Signs in with a code. @returns the browser's cookie headers */
  async browser(): Promise<Headers> {
    const response = await this.send(`/sign-in?token=${await this.code()}`, { as: {} });
    const cookie = response.headers.get('set-cookie')?.split(';')[0];
    if (cookie === undefined) throw new Error(`not signed in: ${response.headers.get('location')}`);
    return { cookie, 'sec-fetch-site': 'same-origin' };
  }

  async close(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.cancel().catch(() => {})));
    await this.server.close();
    if (!this.#keeps) await rm(this.dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

export function bearer(token: string): Headers {
  return { authorization: `Bearer ${token}` };
}

/** Extracts the secret from request headers. */
export function secretOf({ authorization = '', cookie = '' }: Headers): string {
  return authorization.replace(/^Bearer /, '') || cookie.replace(/^.*?=/, '');
}

/** Inserts many audit entries. */
export async function fillAudit(stage: AccessStage, count: number): Promise<void> {
  const { entries } = await stage.ask<AuditPage>('/audit?limit=1');
  let [number, head] = [entries[0]?.number ?? 0, entries[0]?.hash ?? GENESIS_HASH];
  const rows: object[] = [];
  for (let made = 0; made < count; made += 1) {
    number += 1;
    const who = { actor: 'Ada', actorKind: 'human', role: 'operator', credentialId: 'token-1', action: 'send message' };
    const what = {
      agentId: null,
      sessionId: `s${number % 7}`,
      target: '/x',
      digest: '',
      origin: '',
      result: 'done',
      times: 1,
    };
    const entry = { number, at: number, ...who, ...what };
    head = hashOf(entry, head);
    rows.push({ ...entry, hash: head });
  }
  await stage.parts.database.writes.run((transaction) =>
    transaction.execute({
      sql: `INSERT INTO audit (number, at, actor, actor_kind, role, credential_id, action, agent_id, session_id, target,
        digest, origin, result, hash) SELECT value->>'number', value->>'at', value->>'actor', value->>'actorKind',
        value->>'role', value->>'credentialId', value->>'action', value->>'agentId', value->>'sessionId',
        value->>'target', value->>'digest', value->>'origin', value->>'result', value->>'hash' FROM json_each(?)`,
      args: [JSON.stringify(rows)],
    }),
  );
}

/**
 * Checks that credentials get 503 while database reads end in `failure`, that the installation token still works, and
 * that all credentials work afterwards.
 */
export async function expectUnavailable(stage: AccessStage, failure: () => Promise<never>): Promise<void> {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  const { id: _, ...known } = await stage.token({ role: 'viewer' });
  const { id: __, ...unseen } = await stage.token({ role: 'viewer' });
  const person = await stage.browser();
  expect(await stage.status('/me', { as: known })).toBe(200);
  const { reader } = stage.parts.database;
  for (const method of ['execute', 'batch'] as const) vi.spyOn(reader, method).mockImplementation(failure);
  for (const headers of [unseen, known, person]) {
    const response = await firstRefusal(stage, headers);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await response.json()).toMatchObject({ error: { code: 'unavailable' } });
  }
  expect(await stage.status('/me', { as: stage.owner })).toBe(200);
  vi.restoreAllMocks();
  for (const headers of [unseen, known, person]) expect(await stage.status('/me', { as: headers })).toBe(200);
}

/** Retries until a cached credential lookup expires. */
function firstRefusal(stage: AccessStage, headers: Headers): Promise<Response> {
  const look = async () => {
    const response = await stage.send('/api/v1/me', { as: headers });
    return response.status !== 200 && response;
  };
  return vi.waitUntil(look, { interval: 50 });
}
