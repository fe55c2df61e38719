import { describe, expect, test } from 'vitest';
import { nextServer } from '../support/server-target';
import { describeAccessContract } from './access-contract';
import { describeContract, sharedServer } from './contract';
import { describeReadsContract } from './reads-contract';

/** The contract without the front door: failures here only are failures of Next. */
const shared = sharedServer(nextServer);

describeContract('next start', shared);
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
