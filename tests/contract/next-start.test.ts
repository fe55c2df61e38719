import { afterAll, describe, expect, test } from 'vitest';
import { nextServer, type ServerTarget } from '../support/server-target';
import { describeAccessContract } from './access-contract';
import { describeCommandsContract } from './commands-contract';
import { describeIngestContract } from './ingest-contract';
import { describeInsightsContract } from './insights-contract';
import { describeLogLevelContract } from './log-level-contract';
import { describeLogsContract } from './logs-contract';
import { describeMessagesContract } from './messages-contract';
import { describeObligationsContract } from './obligations-contract';
import { describeOwnershipContract } from './ownership-contract';
import { describeReadModelsContract } from './read-models-contract';
import { describeReadsContract } from './reads-contract';
import { describeRequestsContract } from './requests-contract';
import { describeStreamContract } from './stream-contract';
import { describeTurnAtContract } from './turn-at-contract';

/** The same suites without the front door: what they find here and not elsewhere is Next's part of the contract. */
let server: Promise<ServerTarget> | null = null;

/** One server for all suites, which keep to sessions of their own. */
async function shared(): Promise<ServerTarget> {
  server ??= nextServer();
  return { ...(await server), close: async () => {} };
}

afterAll(async () => (await server)?.close());

// in this order: the first look at all sessions there are
describeIngestContract('next start', shared);
describeAccessContract('next start', shared);
describeStreamContract('next start', shared);
describeReadModelsContract('next start', shared);
describeCommandsContract('next start', shared);
describeRequestsContract('next start', shared);
describeReadsContract('next start', nextServer);
describeLogLevelContract('next start', shared);
describeInsightsContract('next start', shared);
describeMessagesContract('next start', shared);
describeObligationsContract('next start', shared);
describeOwnershipContract('next start', shared);
describeLogsContract('next start', shared);
describeTurnAtContract('next start', shared);

describe('next start, told to stop', () => {
  test('says bye to its streams and ends', async () => {
    const own = await nextServer();
    const reader = await own.stream('topic=fleet');
    await reader.frame('up-to-date');
    const closed = own.close({ keepStreams: true });
    expect((await reader.end()).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'shutdown' } });
    await closed;
  });
});
