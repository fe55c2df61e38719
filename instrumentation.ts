/** Runs once, when the server starts: what it watches for does not wait until somebody asks for something. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return;
  const { keepWatch } = await import('./app/api/keep-watch');
  // a database that is not there yet: the first request tries again
  await keepWatch().catch(() => undefined);
}
