import type { IngestResponse, LogMarker } from '@interlude/protocol/envelope';
import { type ErrorBody, withErrors } from '@interlude/protocol/errors';
import type { LogLevel } from '@interlude/protocol/vocabulary';
import { sessionIdleMs, sessionMs } from '@/lib/server/access/access-settings';
import { authenticate } from '@/lib/server/access/authenticate';
import { LoginThrottle } from '@/lib/server/access/login-throttle';
import { postEvents } from '@/lib/server/ingest/post-events';
import { historyRetention } from '@/lib/server/retention/retention-settings';
import { createParts, type ServerParts } from '@/lib/server/server-parts';
import { dumpDatabase, type TestDatabase, temporaryDatabase } from './database';

/** A target for `POST /api/v1/events`: the in-process handler or a live server on loopback. */
export interface IngestTarget {
  origin: string;
  token: string;
  fetch(request: Request): Promise<Response>;
  /** Every row of every table. */
  dump(): Promise<Record<string, unknown[]>>;
  close(): Promise<void>;
}

export interface InProcessTarget extends IngestTarget {
  readonly database: TestDatabase;
  readonly context: ServerParts;
  /** Closes and reopens the database, as a restarted server does. */
  restart(): Promise<void>;
}

const TEST_TOKEN = 'a-token-for-tests-0123456789';

/**
 * @param steady monotonic clock. Default: follows the wall clock.
 * @param open opens the database
 */
export async function inProcessTarget(
  now: () => number = Date.now,
  steady: () => number = now,
  open: () => Promise<TestDatabase> = temporaryDatabase,
): Promise<InProcessTarget> {
  const handle = withErrors(async (request) => {
    const door = {
      settings: () => policy,
      credentials: async () => context.credentials,
      throttle: new LoginThrottle(),
    };
    return postEvents({ request, principal: await authenticate(request, door), whenOver: () => () => {} }, context);
  });
  const policy = {
    token: TEST_TOKEN,
    localName: null,
    allowedHosts: [],
    allowAddresses: false,
    now,
    steady,
    streamMaxMs: null,
    sessionIdleMs: sessionIdleMs({}),
    sessionMs: sessionMs({}),
  };
  let database = await open();
  const all = () =>
    createParts(
      { ...policy, database },
      {
        logs: { maxAgeMs: 14 * 86_400_000, maxBytes: 256 * 1024 * 1024 },
        history: historyRetention({}),
      },
    );
  let context = all();
  return {
    origin: 'http://127.0.0.1',
    token: TEST_TOKEN,
    get database() {
      return database;
    },
    get context() {
      return context;
    },
    fetch: handle,
    dump: () => dumpDatabase(database),
    restart: async () => {
      database = await database.reopen();
      context = all();
    },
    close: () => database.dispose(),
  };
}

/** Sends a request as a runner does. Text and bytes are sent unchanged, other bodies as JSON. */
export function sendEvents(
  target: IngestTarget,
  body: unknown,
  headers: Record<string, string | null> = {},
): Promise<Response> {
  const raw = typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
  const all = {
    authorization: `Bearer ${target.token}`,
    host: '127.0.0.1',
    'content-type': 'application/json',
    ...headers,
  };
  const sent = Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== null);
  const init = { method: 'POST', headers: sent, body: (raw ? body : JSON.stringify(body)) as BodyInit, duplex: 'half' };
  return target.fetch(new Request(`${target.origin}/api/v1/events`, init as RequestInit));
}

/** Sends records; throws if the server rejects any. */
export async function ingest(target: IngestTarget, records: unknown[], epoch = 1, id = 'p1'): Promise<IngestResponse> {
  const response = await sendEvents(target, { producer: { id, epoch }, records });
  const answer = await response.json();
  if (response.status !== 200) throw new Error(`refused: ${JSON.stringify(answer)}`);
  return answer as IngestResponse;
}

export async function errorOf(response: Response): Promise<ErrorBody['error']> {
  return ((await response.json()) as ErrorBody).error;
}

/** A record with the fields common to every kind. */
export function record(seq: number, fields: Record<string, unknown>): Record<string, unknown> {
  return { seq, kind: 'event', agentId: 'a1', sessionId: 's1', occurredAt: 1_795_170_000_000 + seq, ...fields };
}

/** A record with a unique CUSTOM event. */
export function marker(seq: number, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return record(seq, { event: { type: 'CUSTOM', name: 'marker', value: seq }, ...fields });
}

export interface WrittenLine {
  message: string;
  level?: LogLevel;
  component?: string;
  occurredAt?: number;
  marker?: LogMarker;
}

/** One agent’s outbox. Writes log lines through ingest, as a runner does. */
export class LineWriter {
  readonly agentId: string;
  readonly #target: InProcessTarget;
  #seq = 0;

  constructor(target: InProcessTarget, agentId: string) {
    this.#target = target;
    this.agentId = agentId;
  }

  /** @param occurredAt default for lines without their own */
  async write(lines: readonly WrittenLine[], occurredAt = 1_795_170_000_000): Promise<void> {
    if (lines.length === 0) return;
    const records = lines.map(({ occurredAt: at = occurredAt, level = 'info', component = 'c', ...log }) =>
      record(++this.#seq, {
        kind: 'log',
        agentId: this.agentId,
        sessionId: undefined,
        occurredAt: at,
        log: { level, component, ...log },
      }),
    );
    await ingest(this.#target, records, 1, `outbox-${this.agentId}`);
  }
}
