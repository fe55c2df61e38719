import { AppError, withErrors } from '@/lib/protocol/errors';

/**
 * The exports of a route that asks for no sign-in. Every method is mounted, because Next would answer the missing ones
 * without the wire's error body.
 */
type Handler = (request: Request) => Promise<Response>;

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
type Method = (typeof METHODS)[number];

export function mountOpen(handlers: Partial<Record<Method, Handler>>): Record<Method, Handler> {
  const allow = METHODS.filter((method) => handlers[method] !== undefined).join(', ');
  const refuse: Handler = async (request) => {
    throw new AppError('method_not_allowed', `${request.method} is not allowed here. Use ${allow}.`, {
      headers: { allow },
    });
  };
  const routes = METHODS.map((method): [Method, Handler] => [method, withErrors(handlers[method] ?? refuse)]);
  return Object.fromEntries(routes) as Record<Method, Handler>;
}
