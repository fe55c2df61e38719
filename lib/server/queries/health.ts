import { AppError } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { TtlCache } from '@/db/ttl-cache';
import type { ServerContext } from '@/lib/server/access/server-context';

const UNCACHED = { 'cache-control': 'no-store' };

/** `GET /healthz`: this process answers. Open to everybody, and says nothing else. */
export async function healthz(): Promise<Response> {
  return Response.json({ status: 'ok' }, { headers: UNCACHED });
}

/** One check serves everybody who asks within this time: the route is open, and a check costs a write. */
const FRESH_MS = 2_000;
/** A check that found it not ready serves for less: people wait for that to end. */
const AGAIN_MS = 200;
/** A database that takes longer counts as not ready. */
const PATIENCE_MS = 5_000;

/**
 * Whether the database can be written to, looked at now and then. Changes are told in the server's own log, once each.
 */
export class Readiness {
  readonly #freshMs: number;
  readonly #patienceMs: number;
  readonly #kept: TtlCache<boolean>;
  #wasReady = true;

  /** @param isShared as for `KeptAnswer` */
  constructor({ freshMs = FRESH_MS, patienceMs = PATIENCE_MS, isShared = true } = {}) {
    this.#freshMs = freshMs;
    this.#patienceMs = patienceMs;
    this.#kept = new TtlCache(isShared);
  }

  isReady(context: () => Promise<Pick<ServerContext, 'database'>>): Promise<boolean> {
    return this.#kept.get(
      () => performance.now(),
      () => this.#look(context),
      (isReady) => (isReady ? this.#freshMs : Math.min(this.#freshMs, AGAIN_MS)),
    );
  }

  async #look(context: () => Promise<Pick<ServerContext, 'database'>>): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`it did not answer within ${this.#patienceMs / 1_000} s`), this.#patienceMs);
    });
    const trouble = await Promise.race([troubleOf(context), late]);
    clearTimeout(timer);
    const isReady = trouble === null;
    if (isReady === this.#wasReady) return isReady;
    this.#wasReady = isReady;
    if (isReady) serverLog('info', 'ready again: the database can be written to');
    else serverLog('error', `not ready: the database can’t be written to: ${trouble}`);
    return isReady;
  }
}

async function troubleOf(context: () => Promise<Pick<ServerContext, 'database'>>): Promise<string | null> {
  try {
    const { database } = await context();
    // first, because it knows the cause of what a read would fail at
    const trouble = await database.trouble();
    if (trouble === null) await database.reader.execute('SELECT position FROM counter');
    return trouble;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * `GET /readyz`: the database can be written to. Open to everybody, so the cause of a failure goes to our own log only.
 *
 * @throws AppError `unavailable`
 */
export async function readyz(
  context: () => Promise<Pick<ServerContext, 'database'>>,
  readiness: Readiness,
): Promise<Response> {
  if (!(await readiness.isReady(context))) {
    const message = 'The database can’t be written to; the server’s own log says why.';
    throw new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
  }
  return Response.json({ status: 'ready' }, { headers: UNCACHED });
}
