/** Runs once, before Next handles a request. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return;
  const { runServer } = await import('./lib/server/run-server');
  await runServer();
}
