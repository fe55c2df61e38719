import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FrameReader } from '../../support/frames';
import { ingest, record } from '../../support/ingest-target';
import { inProcessServer, type ServerTarget } from '../../support/server-target';

let server: ServerTarget;
beforeEach(async () => {
  // No poll runs, so only a wake can deliver.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  server = await inProcessServer();
});
afterEach(async () => {
  await server.close();
  vi.useRealTimers();
});

it('wakes the runner’s stream for a message without a poll', async () => {
  const event = { type: 'CUSTOM', name: 'marker', value: 0 };
  await ingest(server, [record(1, { agentId: 'a1', sessionId: 's1', event })], 1, 'a1');
  const { body } = await server.get('/api/v1/agents/a1/commands');
  const reader = new FrameReader(body as ReadableStream<Uint8Array>);
  await reader.until(() => reader.frames.some(({ event }) => `${event}` === 'up-to-date'));
  for (let count = 1; count <= 3; count += 1) {
    const sent = await server.send('/api/v1/sessions/s1/messages', {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: `message ${count}`, clientId: `c${count}` }),
    });
    expect(sent.status).toBe(202);
    await reader.until(() => reader.frames.filter(({ event }) => `${event}` === 'command').length === count);
  }
  await reader.cancel();
});
