import { type Database, database } from '@/db/client';
import { type AccessPolicy, accessPolicy } from './access-policy';

/** What every handler is given beside its request. A test builds its own; the mounts under `app/` share one. */
export interface ServerContext extends AccessPolicy {
  database: Database;
  /** A clock that only goes on, in milliseconds; unless given, that of the process. */
  steady?: () => number;
  /** When to end a stream of our own accord, for hosts that cut long requests; null for never. */
  streamMaxMs: number | null;
}

const CONTEXT = Symbol.for('interlude.server-context');
const holder = globalThis as { [CONTEXT]?: Promise<ServerContext> };

/**
 * The process's one context. On `globalThis`, because Next bundles every route handler by itself.
 *
 * @throws AppError `unavailable` when there is no token or the database can't be opened; the next request tries again
 */
export function serverContext(): Promise<ServerContext> {
  holder[CONTEXT] ??= openContext(process.env).catch((error) => {
    delete holder[CONTEXT];
    throw error;
  });
  return holder[CONTEXT];
}

async function openContext(env: Record<string, string | undefined>): Promise<ServerContext> {
  const policy = accessPolicy(env);
  const seconds = Number(env.INTERLUDE_STREAM_MAX_SECONDS);
  return { ...policy, database: await database(), streamMaxMs: seconds > 0 ? seconds * 1000 : null };
}
