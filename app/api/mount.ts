import { authenticate } from '@/lib/access/authenticate';
import type { ServerContext } from '@/lib/access/server-context';
import { AppError, withErrors } from '@/lib/protocol/errors';
import { keepWatch } from './keep-watch';

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
type Method = (typeof METHODS)[number];

/** A handler as `lib` exports it. It authenticates by itself; `ids` are the decoded `[name]` parts of its path. */
export type Handler = (request: Request, server: ServerContext, ids: Record<string, string>) => Promise<Response>;

type RouteHandler = (request: Request, route: { params: Promise<Record<string, string>> }) => Promise<Response>;

/**
 * A route's exports. Every method is mounted, because Next would answer the missing ones (and HEAD and OPTIONS by
 * itself, running GET for it) without the wire's error body.
 */
export function mount(handlers: Partial<Record<Method, Handler>>): Record<Method, RouteHandler> {
  const allow = METHODS.filter((method) => handlers[method] !== undefined).join(', ');
  const refuse: Handler = async (request, server) => {
    await authenticate(request, server);
    throw new AppError('method_not_allowed', `${request.method} is not allowed here. Use ${allow}.`, {
      headers: { allow },
    });
  };
  const routes = METHODS.map((method): [Method, RouteHandler] => [
    method,
    withErrors(async (request, { params }) => {
      // where nothing runs when the server starts, or the database was away then
      const server = await keepWatch();
      return (handlers[method] ?? refuse)(request, server, await params);
    }),
  ]);
  return Object.fromEntries(routes) as Record<Method, RouteHandler>;
}
