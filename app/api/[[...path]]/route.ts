import { theServer } from '@/lib/server/process-server.mjs';

/** Everything that is no page, wherever no front door takes it before Next: see lib/server/routes.ts. */
export const dynamic = 'force-dynamic';

const handle = (request: Request): Promise<Response> => theServer().handle(request);

export {
  handle as DELETE,
  handle as GET,
  handle as HEAD,
  handle as OPTIONS,
  handle as PATCH,
  handle as POST,
  handle as PUT,
};
