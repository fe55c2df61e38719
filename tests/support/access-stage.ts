import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NewToken, NewTokenRequest, SignInCode } from '@interlude/protocol/access';
import { addCredential, type NewCredential } from '@/lib/server/access/credential-rows';
import { createServer, type Server } from '@/lib/server/create-server';
import type { ServerParts } from '@/lib/server/server-parts';
import { FrameReader } from './frames';
import { createMigratedFile } from './migrated-file';

const OWNER_TOKEN = 'the-owner-of-this-test-0123456789';

/** Somebody who sends requests: what goes with each of them. */
export type Headers = Record<string, string>;

export interface Sent {
  method?: string;
  as?: Headers;
  /** JSON, unless it is bytes. */
  body?: unknown;
  headers?: Headers;
}

/** A whole server in this process, and whoever is to be let in by it or not. */
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

  /** @param dataDir of another server, to stand beside it; it is kept */
  static async start({ dataDir, env = {} }: { dataDir?: string; env?: Headers } = {}): Promise<AccessStage> {
    const folder = dataDir ?? (await mkdtemp(join(tmpdir(), 'interlude-access-')));
    if (dataDir === undefined && env.INTERLUDE_DATABASE_URL === undefined) {
      await createMigratedFile(join(folder, 'interlude.db'));
    }
    const server = createServer({ INTERLUDE_TOKEN: OWNER_TOKEN, INTERLUDE_DATA_DIR: folder, ...env });
    return new AccessStage(server, await server.parts(), folder, dataDir !== undefined);
  }

  readonly owner: Headers = bearer(OWNER_TOKEN);

  send(path: string, { method = 'GET', as = this.owner, body, headers = {} }: Sent = {}): Promise<Response> {
    const isRaw = body === undefined || body instanceof Uint8Array;
    const all = { host: '127.0.0.1:4319', ...(isRaw ? {} : { 'content-type': 'application/json' }), ...as, ...headers };
    const init = { method, headers: all, body: isRaw ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) };
    return this.server.handle(new Request(`http://127.0.0.1:4319${path}`, init));
  }

  /** @throws Error with the answer where it is a refusal */
  async ask<Model>(path: string, sent: Sent = {}): Promise<Model> {
    const response = await this.send(`/api/v1${path}`, sent);
    const text = await response.text();
    if (!response.ok) throw new Error(`${sent.method ?? 'GET'} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Model;
  }

  async status(path: string, sent: Sent = {}): Promise<number> {
    const response = await this.send(`/api/v1${path}`, sent);
    await response.body?.cancel().catch(() => {});
    return response.status;
  }

  /** Opens a stream, which must be let in. */
  async stream(path: string, as: Headers, sent: Sent = {}): Promise<FrameReader> {
    const response = await this.send(`/api/v1${path}`, { as, ...sent });
    if (response.status !== 200 || response.body === null) throw new Error(await response.text());
    const reader = new FrameReader(response.body);
    this.#readers.push(reader);
    return reader;
  }

  /** A program's token, as an admin makes it. */
  async token(made: Partial<NewTokenRequest>): Promise<Headers & { id: string }> {
    const { token, credential } = await this.ask<NewToken>('/tokens', { method: 'POST', body: made });
    return { ...bearer(token), id: credential.id };
  }

  /** Any credential, as if it had been made in the past. */
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

  /** A person's browser, signed in by a code. */
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

/** The secret in it. */
export function secretOf({ authorization = '', cookie = '' }: Headers): string {
  return authorization.replace(/^Bearer /, '') || cookie.replace(/^.*?=/, '');
}
