import type { Database } from '@/db/client';
import { sessionIdleMs, sessionMs } from '@/lib/server/access/access-settings';
import { GapTally } from '@/lib/server/ingest/post-events';

export const TOKEN = 'bench-token-of-enough-characters';

/** Handler dependencies for benches that call handlers without HTTP. */
export function benchContext<Given extends Database>(database: Given) {
  const access = { token: TOKEN, localName: null, allowedHosts: [], allowAddresses: false, now: Date.now };
  return {
    ...access,
    database,
    streamMaxMs: null,
    sessionIdleMs: sessionIdleMs({}),
    sessionMs: sessionMs({}),
    gaps: new GapTally(),
  };
}
