import { withoutBasePath } from '@interlude/protocol/base-path.mjs';
import { theServer } from '@/lib/server/process-server.mjs';

/** Handles all routes except pages, unless a server in front of Next already has: see lib/server/routes.ts. */
export const dynamic = 'force-dynamic';

const handle = (request: Request): Promise<Response> => theServer().handle(inside(request));

export {
  handle as DELETE,
  handle as GET,
  handle as HEAD,
  handle as OPTIONS,
  handle as PATCH,
  handle as POST,
  handle as PUT,
};

/** Removes the base path. */
function inside(request: Request): Request {
  const url = new URL(request.url);
  const path = withoutBasePath(url.pathname);
  if (path === null || path === url.pathname) return request;
  url.pathname = path;
  return new Request(url, request);
}
