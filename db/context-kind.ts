import { AppError } from '@interlude/protocol/errors';

/**
 * What a server may count on, chosen once, at the start.
 *
 * `shared`: its process lives until it is told to stop. Requests share its connections, and timers do what is due.
 * `perRequest`: its process may freeze after any answer, and may never wake again. Each request has everything for itself,
 * does what is due before it shows it, and leaves nothing under way.
 */
export type ContextKind = 'shared' | 'perRequest';

const KINDS: Record<string, ContextKind> = { shared: 'shared', 'per-request': 'perRequest' };

/** The kind that the environment names; otherwise that of the host. */
export function contextKind(env: Record<string, string | undefined>): ContextKind {
  const named = env.INTERLUDE_CONTEXT;
  if (named) return KINDS[named] ?? 'shared';
  return env.VERCEL === '1' ? 'perRequest' : 'shared';
}

/** @throws AppError `unavailable` for a name that is none, and for a file where none can be kept */
export function checkContext(env: Record<string, string | undefined>, kind: ContextKind): void {
  const named = env.INTERLUDE_CONTEXT;
  if (named && KINDS[named] === undefined) {
    throw new AppError('unavailable', `INTERLUDE_CONTEXT is ${JSON.stringify(named)}. Use shared or per-request.`);
  }
  if (kind === 'shared' || /^(libsql|https?|wss?):/.test(env.INTERLUDE_DATABASE_URL ?? '')) return;
  throw new AppError(
    'unavailable',
    'Nothing on disk outlives a request here. Set INTERLUDE_DATABASE_URL to a libSQL server, such as libsql://<host>.',
  );
}
