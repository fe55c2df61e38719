/** Runs once, before Next answers anything. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return;
  const { runServer } = await import('./lib/server/run-server');
  await runServer();
}
