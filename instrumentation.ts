/** Runs once, before Next answers anything: the one server of this process is made and started here. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return;
  const { createServer } = await import('./lib/server/create-server');
  const { holdServer, isLaunched } = await import('./lib/server/process-server.mjs');
  const server = createServer(process.env);
  holdServer(server);
  await server.start();
  // Next waits for open responses when it is told to stop; a stream would keep it waiting for ever.
  if (!isLaunched())
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void server.close());
}
