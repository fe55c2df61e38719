import type { Server } from '@/lib/server/create-server';
import { serverFor } from '@/lib/server/create-server';

/** The handlers as a worker, without Node. */
let server: Server | null = null;

export default {
  fetch(request: Request, env: Record<string, string>): Promise<Response> {
    server ??= serverFor(env);
    return server.handle(request);
  },
};
