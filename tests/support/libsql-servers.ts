import type { TestProject } from 'vitest/node';
import { startLibsqlServer } from './libsql-server.mjs';

/** Starts a libSQL server per worker and sets INTERLUDE_TEST_SERVERS to their URLs. @returns stops them */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const count = Number(project.config.maxWorkers);
  const servers = await Promise.all(Array.from({ length: count }, startLibsqlServer));
  process.env.INTERLUDE_TEST_SERVERS = servers.map(({ url }) => url).join(' ');
  return async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
}
