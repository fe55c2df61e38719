import { describe, expect, test } from 'vitest';
import { nextServer } from '../support/server-target';
import { describeAccessContract } from './access-contract';
import { describeAttachmentsContract } from './attachments-contract';
import { describeCommandsContract } from './commands-contract';
import { sharedServer } from './contract';
import { describeIngestContract } from './ingest-contract';
import { describeLogsContract } from './logs-contract';
import { describeReadsContract } from './reads-contract';
import { describeStreamContract } from './stream-contract';

/**
 * The contract without the front door: failures here only are failures of Next. Only the suites that depend on how bodies,
 * headers and streams are carried: all routes share one handler.
 */
const shared = sharedServer(nextServer);

describeIngestContract('next start', shared);
describeStreamContract('next start', shared);
describeCommandsContract('next start', shared);
describeAttachmentsContract('next start', shared);
describeLogsContract('next start', shared);
describeAccessContract('next start', shared);
describeReadsContract('next start', nextServer);

describe('next start', () => {
  test('sends bye to its streams and exits when it is stopped', async () => {
    const own = await nextServer();
    const reader = await own.stream('topic=fleet');
    await reader.frame('up-to-date');
    const closed = own.close({ keepStreams: true });
    expect((await reader.end()).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'shutdown' } });
    await closed;
  });
});
