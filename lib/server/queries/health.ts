import { AppError } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { ServerContext } from '@/lib/server/access/request-context';
import { TtlCache } from '@/lib/server/access/ttl-cache';

const UNCACHED = { 'cache-control': 'no-store' };

/** `GET /healthz`: this process responds. Needs no credential. */
export async function healthz(): Promise<Response> {
  return Response.json({ status: 'ok' }, { headers: UNCACHED });
}

/** Lifetime of a check. The route is open, and a check costs a write. */
const FRESH_MS = 2_000;
/** Shorter after a failure, because people wait for the recovery. */
const AGAIN_MS = 200;
/** Timeout after which the database counts as not ready. */
const TIMEOUT_MS = 5_000;

/** Checks at most every few seconds that the database is writable, and logs each change once. */
export class Readiness {
  readonly #freshMs: number;
  readonly #cache: TtlCache<boolean>;
  #wasReady = true;

  /** @param isShared as for `TtlCache` */
  constructor({ freshMs = FRESH_MS, isShared = true } = {}) {
    this.#freshMs = freshMs;
    this.#cache = new TtlCache(isShared);
  }

  isReady(context: () => Promise<Pick<ServerContext, 'database'>>): Promise<boolean> {
    return this.#cache.get(
      () => performance.now(),
      () => this.#check(context),
      (isReady) => (isReady ? this.#freshMs : Math.min(this.#freshMs, AGAIN_MS)),
    );
  }

  async #check(context: () => Promise<Pick<ServerContext, 'database'>>): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`it did not respond within ${TIMEOUT_MS / 1_000} s`), TIMEOUT_MS);
    });
    const trouble = await Promise.race([findTrouble(context), late]);
    clearTimeout(timer);
    const isReady = trouble === null;
    if (isReady === this.#wasReady) return isReady;
    this.#wasReady = isReady;
    if (isReady) serverLog('info', 'ready again: the database can be written to');
    else serverLog('error', `not ready: the database can’t be written to: ${trouble}`);
    return isReady;
  }
}

async function findTrouble(context: () => Promise<Pick<ServerContext, 'database'>>): Promise<string | null> {
  try {
    const { database } = await context();
    // Checked first, because the database knows why a read would fail.
    const trouble = await database.trouble();
    if (trouble === null) await database.reader.execute('SELECT position FROM counter');
    return trouble;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * `GET /readyz`: the database can be written to. Needs no credential, so only the server's log names the cause.
 *
 * @throws AppError `unavailable`
 */
export async function readyz(
  context: () => Promise<Pick<ServerContext, 'database'>>,
  readiness: Readiness,
): Promise<Response> {
  if (!(await readiness.isReady(context))) {
    const message = 'The database can’t be written to. See the server’s log for the cause.';
    throw new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
  }
  return Response.json({ status: 'ready' }, { headers: UNCACHED });
}
