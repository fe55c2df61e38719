import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { streamCountingProxy } from '../support/test-proxies';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';

/** With a connection each, HTTP/1.1 would make the seventh tab of a host wait forever. */
const TABS = 7;

const site = perFile(() => visitOwn({ proxy: ({ url }) => streamCountingProxy(url) }));

test('seven tabs opened at once are all live on one stream', async () => {
  await new EventWriter(site.server, 'agent-one').write('first', userTurn('r1', 'Hello', 'Here I am'));
  const pages = await Promise.all(Array.from({ length: TABS }, () => site.load('/sessions/first')));
  for (const page of pages) await live(page);
  await expect.poll(() => site.proxy.open).toBe(1);
});
