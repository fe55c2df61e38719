import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { type StreamCounter, streamCountingProxy } from '../support/test-proxies';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';

/** With a connection each, HTTP/1.1 would make the seventh tab of a host wait forever. */
const TABS = 7;

let streams: StreamCounter;
const it = perFile(() =>
  visitOwn({
    proxy: async ({ url }) => {
      streams = await streamCountingProxy(url);
      return streams;
    },
  }),
);

test('seven tabs opened at once are all live on one stream', async () => {
  await new EventWriter(it.server, 'agent-one').write('first', userTurn('r1', 'Hello', 'Here I am'));
  const pages = await Promise.all(Array.from({ length: TABS }, () => it.load('/sessions/first')));
  for (const page of pages) await live(page);
  await expect.poll(() => streams.open).toBe(1);
});
