import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { guessableSecrets } from '@/lib/server/access/access-settings';
import { prepareHeaders } from '@/lib/server/access/incoming-headers.mjs';
import { serverFor } from './create-server';
import { isLaunched, setServer } from './process-server.mjs';

/** Makes and starts the one server of this process. If no launcher does, it also closes it with the process. */
export async function runServer(): Promise<void> {
  for (const warning of guessableSecrets(process.env)) serverLog('warn', warning);
  const server = serverFor(process.env);
  setServer(server);
  await server.start();
  if (isLaunched()) return;
  // Next runs alone: the front door would do this. On Vercel the host's own header names the client.
  subscribe('http.server.request.start', (message) => {
    prepareHeaders((message as { request: IncomingMessage }).request);
  });
  // Next waits for open responses when told to stop; a stream would keep it waiting for ever.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void server.close());
}
