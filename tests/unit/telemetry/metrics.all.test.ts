import { describe, expect, test } from 'vitest';
import { ensureLibsqlServer, startLibsqlServer } from '../../support/libsql-server.mjs';
import { inProcessServer } from '../../support/server-target';

const TOKEN = 'a-token-for-whoever-watches-0123';

describe.skipIf('missing' in ensureLibsqlServer())('/metrics of a per-request server', () => {
  test('reports the fleet, and that this process has no counters', async () => {
    const libsql = await startLibsqlServer();
    const settings = { INTERLUDE_CONTEXT: 'per-request', INTERLUDE_METRICS_TOKEN: TOKEN };
    const target = await inProcessServer(libsql.url, settings);
    try {
      const response = await target.send('/metrics', { headers: { authorization: `Bearer ${TOKEN}` } });
      const text = await response.text();
      expect(response.status).toBe(200);
      expect(text).toMatch(/^interlude_agents 0$/m);
      expect(text).toContain('# This process freezes between requests');
      expect(text).not.toMatch(/interlude_(ingest|fanout|request|write)|process_cpu|subscribers/);
    } finally {
      await target.close();
      await libsql.stop();
    }
  });
});
