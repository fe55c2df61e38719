import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { countStreams, type StreamCounter } from '../support/stream-counter';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

/** With a connection of its own each, HTTP/1.1 would have the seventh tab of a host wait for ever. */
const TABS = 7;

let it: OwnVisit;
let streams: StreamCounter;
beforeAll(async () => {
  it = await visitOwn({
    origin: async (server) => {
      streams = await countStreams(server.url);
      return streams.origin;
    },
  });
});
afterAll(async () => {
  expect(it.complaints).toEqual([]);
  await streams.close();
  await it.close();
});

test('seven tabs that are opened at once are all live on one stream', async () => {
  await new EventWriter(it.server, 'agent-one').write('first', userTurn('r1', 'Hello', 'Here I am'));
  const pages = await Promise.all(Array.from({ length: TABS }, () => it.load('/sessions/first')));
  for (const page of pages) await live(page);
  await expect.poll(() => streams.open).toBe(1);
});
