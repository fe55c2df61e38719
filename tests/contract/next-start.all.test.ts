import { describe, expect, test } from 'vitest';
import { nextServer } from '../support/server-target';
import { describeAccessContract } from './access-contract';
import { describeContract, sharedServer } from './contract';
import { describeReadsContract } from './reads-contract';

/** The same suites without the front door: what they find here and not elsewhere is Next's part of the contract. */
const shared = sharedServer(nextServer);

describeContract('next start', shared);
describeAccessContract('next start', shared);
describeReadsContract('next start', nextServer);

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
