import type { TestProject } from 'vitest/node';
import { buildIfStale } from '../../lib/launch/build.mjs';
import { type LiveServer, startLiveServer } from './live-server';

/** A dashboard shared by one worker's browser tests. */
export type SharedDashboard = Pick<LiveServer, 'url' | 'token' | 'dataDir' | 'databaseUrl'>;

declare module 'vitest' {
  export interface ProvidedContext {
    /** Dashboards by `VITEST_POOL_ID - 1`. */
    dashboards: SharedDashboard[];
  }
}

/** Starts a dashboard per worker. @returns stops them */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Build once; concurrent builds would conflict.
  await buildIfStale();
  const servers = await Promise.all(Array.from({ length: Number(project.config.maxWorkers) }, () => startLiveServer()));
  project.provide(
    'dashboards',
    servers.map(({ url, token, dataDir, databaseUrl }) => ({ url, token, dataDir, databaseUrl })),
  );
  return async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
}
