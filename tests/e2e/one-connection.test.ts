import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { countStreams, type StreamCounter } from '../support/stream-counter';
import { live, transcriptOf } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

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

test('seven tabs share one stream, and every one of them is live', async () => {
  const one = new EventWriter(it.server, 'agent-one');
  const two = new EventWriter(it.server, 'agent-two');
  await one.write('first', userTurn('r1', 'Hello', 'Here I am'));
  await two.write('second', userTurn('r1', 'Hello', 'Me too'));
  // HTTP/1.1 grants a browser six connections to a host: with one for each tab the seventh would wait for ever
  const paths = ['/sessions/first', '/sessions/first', '/sessions/second', '/', '/agents', '/agents/agent-one'];
  const pages = await Promise.all([...paths, '/sessions/second'].map((path) => it.open(path)));
  for (const page of pages) await live(page);
  await expect.poll(() => streams.open).toBe(1);

  await one.write('first', userTurn('r2', 'Go on', 'Said to every tab'));
  await two.write('second', userTurn('r2', 'Go on', 'Said to the other tabs'));
  const [first, again, second, home] = pages as [Page, Page, Page, Page];
  await transcriptOf(first).getByText('Said to every tab').waitFor();
  await transcriptOf(again).getByText('Said to every tab').waitFor();
  await transcriptOf(second).getByText('Said to the other tabs').waitFor();
  await home.getByRole('link').filter({ hasText: 'Said to every tab' }).waitFor();
  expect(streams.open).toBe(1);

  // the tab that came first is closed: whoever holds the connection, the others go on
  await first.close();
  await one.write('first', userTurn('r3', 'And now?', 'Still there'));
  await transcriptOf(again).getByText('Still there').waitFor();
  expect(streams.open).toBe(1);
  await Promise.all(pages.slice(1).map((page) => page.close()));
  await expect.poll(() => streams.open).toBe(0);
});

test('a walk through the pages of one tab needs one stream at a time', async () => {
  const page = await it.open('/');
  await live(page);
  await page.getByRole('link', { name: /agent-one/ }).click();
  await transcriptOf(page).getByText('Here I am').waitFor();
  await page.getByRole('link', { name: 'agent-one', exact: true }).click();
  await page.getByRole('heading', { name: 'agent-one', level: 1 }).waitFor();
  await page.goBack();
  await transcriptOf(page).getByText('Here I am').waitFor();
  await expect.poll(() => streams.open).toBe(1);
});
