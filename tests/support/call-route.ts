import { withErrors } from '@interlude/protocol/errors';
import { OWNER, type Principal } from '@/lib/server/access/principal';
import type { ServerContext } from '@/lib/server/access/request-context';
import { PLAIN_DIGESTS } from '@/lib/server/access/shown-digests';
import { findRoute, handleRoute } from '@/lib/server/handle-route';
import type { ServerParts } from '@/lib/server/server-parts';

/**
 * Calls a route as an authenticated caller.
 *
 * @param path below /api/v1, with its query
 * @param server dependencies of the route's handler
 */
export function callRoute(
  server: ServerContext & Partial<ServerParts>,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  {
    body,
    headers = {},
    principal = OWNER,
  }: { body?: unknown; headers?: Record<string, string>; principal?: Principal } = {},
): Promise<Response> {
  const request = new Request(`http://127.0.0.1/api/v1${path}`, {
    method,
    headers: { host: '127.0.0.1', authorization: `Bearer ${server.token}`, ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return withErrors(async () => {
    const found = findRoute(method, new URL(request.url).pathname);
    if (found.kind !== 'route' || found.route.access === 'open') throw new Error(`${method} ${path} is not a route`);
    return handleRoute(found.route, request, server as ServerParts, found.ids, principal);
  })(request);
}

/** The owner's request context, as a handler receives it. */
export const ownerContext = { principal: OWNER, digests: PLAIN_DIGESTS, whenOver: () => () => {} };
