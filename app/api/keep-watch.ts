import { type ServerContext, serverContext } from '@/lib/access/server-context';
import { commandHubOf } from '@/lib/commands/command-hub';
import { logKeeperOf } from '@/lib/log-store/log-keeper';

/** From now on commands expire, runners that went silent are missed, and logs are kept. Twice does no harm. */
export async function keepWatch(): Promise<ServerContext> {
  const server = await serverContext();
  commandHubOf(server).keep();
  logKeeperOf(server).keep();
  return server;
}
