import { expect, test } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import { expectWithin } from '../support/pace';
import { inProcessServer, liveServer } from '../support/server-target';
import { strictClient } from '../support/strict-clients';
import { describeAgUiContract } from './agui-contract';

describeAgUiContract('in this process', inProcessServer, { isLive: false });
describeAgUiContract('npm start', liveServer, { isLive: true });

test('a server that stops tells the clients that wait, and ends at once', async () => {
  const server = await liveServer();
  const event = { type: 'CUSTOM', name: 'session:started', value: {} };
  await ingest(server, [record(1, { agentId: 'a', sessionId: 's', event })]);
  const { origin, token } = server;
  const client = strictClient('1.0', { url: `${origin}/api/v1/agui/a`, token, threadId: 's' });
  client.addMessage({ id: 'u1', role: 'user', content: 'Are you there?' });
  const heard: unknown[] = [];
  const running = client.runAgent({}, { onEvent: ({ event: told }: { event: object }) => void heard.push(told) });
  await expect
    .poll(async () => (await (await server.get('/api/v1/sessions/s/transcript')).text()).includes('there?'))
    .toBe(true);
  const askedAt = performance.now();
  await Promise.all([server.close({ keepStreams: true }), running]);
  expect(heard).toEqual([expect.objectContaining({ type: 'RUN_ERROR', code: 'stream_shutdown' })]);
  expectWithin(performance.now() - askedAt, 10_000);
});
