import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { forLog } from '@interlude/protocol/errors';
import { processState } from '@interlude/protocol/process-state.mjs';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { guessableSecrets } from '@/lib/server/access/access-settings';
import { prepareHeaders } from '@/lib/server/access/incoming-headers.mjs';
import { type Server, serverFor } from './create-server';
import { setServer } from './process-server.mjs';

/** Creates and starts this process's server. Without a launcher, also closes the server when the process ends. */
export async function runServer(): Promise<void> {
  for (const warning of guessableSecrets(process.env)) serverLog('warn', warning);
  const server = serverFor(process.env);
  setServer(server);
  // a launcher refuses to start instead
  if (!processState().isLaunched) logRefusedSetting(server);
  await server.start();
  if (processState().isLaunched) return;
  // without a front door, this prepares Next's requests; on Vercel the host's own header has the client address
  subscribe('http.server.request.start', (message) => {
    prepareHeaders((message as { request: IncomingMessage }).request);
  });
  // Next waits for open responses on shutdown; a stream would never end
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void server.close());
}

/** Logs the invalid setting that fails every request. */
function logRefusedSetting(server: Server): void {
  try {
    server.checkSettings();
  } catch (error) {
    serverLog('error', 'all requests fail until you correct a setting:', { error: forLog(error) });
  }
}
