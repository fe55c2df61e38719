import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { notePeerAddress } from '@/lib/access/peer-address.mjs';
import { serverOf } from './per-request-server';
import { holdServer, isLaunched } from './process-server.mjs';

/** Makes and starts the one server of this process. If no launcher does, it also closes it with the process. */
export async function runServer(): Promise<void> {
  const server = serverOf(process.env);
  holdServer(server);
  await server.start();
  if (isLaunched()) return;
  // No front door does it here. Where a host makes the connections, its own header has the address: see client-address.
  subscribe('http.server.request.start', (message) =>
    notePeerAddress((message as { request: IncomingMessage }).request),
  );
  // Next waits for open responses when told to stop; a stream would keep it waiting for ever.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void server.close());
}
