import type { TestProject } from 'vitest/node';
import { startLibsqlServer } from './libsql-server.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of each worker one; none where the tests use files. */
    libsqlServers?: string[];
  }
}

/** Starts a libSQL server for each worker. @returns how to stop them */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const count = Number(project.config.maxWorkers);
  const servers = await Promise.all(Array.from({ length: count }, startLibsqlServer));
  project.provide(
    'libsqlServers',
    servers.map(({ url }) => url),
  );
  return async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
}
