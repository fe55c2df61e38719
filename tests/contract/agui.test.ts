import { expect, test } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import { inProcessServer, liveServer } from '../support/server-target';
import { strictClient } from '../support/strict-clients';
import { describeAgUiContract } from './agui-contract';

describeAgUiContract('in this process', inProcessServer, { isLive: false });
describeAgUiContract('npm start', liveServer, { isLive: true });

test('ends the run of a waiting client with RUN_ERROR when the server stops', async () => {
  const server = await liveServer();
  const event = { type: 'CUSTOM', name: 'session:started', value: {} };
  await ingest(server, [record(1, { agentId: 'a', sessionId: 's', event })]);
  const { origin, token } = server;
  let isAnswered = false;
  const client = strictClient('1.0', {
    url: `${origin}/api/v1/agui/a`,
    token,
    threadId: 's',
    // The server stores the message before it responds: only a client with response headers waits for events.
    fetch: async (...request) => {
      const response = await fetch(...request);
      isAnswered = true;
      return response;
    },
  });
  client.addMessage({ id: 'u1', role: 'user', content: 'Are you there?' });
  const events: unknown[] = [];
  const running = client.runAgent({}, { onEvent: ({ event: told }: { event: object }) => void events.push(told) });
  await expect.poll(() => isAnswered).toBe(true);
  await Promise.all([server.close({ keepStreams: true }), running]);
  expect(events).toEqual([expect.objectContaining({ type: 'RUN_ERROR', code: 'stream_shutdown' })]);
});
