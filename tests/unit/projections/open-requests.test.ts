import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { MAX_OPEN_REQUESTS, MAX_PENDING_REQUESTS } from '@interlude/protocol/limits';
import { attentionOfSession } from '@interlude/protocol/projections/open-requests';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { newSession } from '@interlude/protocol/projections/session-summary';
import { placeEvents } from '@interlude/protocol/projections/turns';
import { expect, it } from 'vitest';
import { foldSession } from '@/tests/support/memory-log';
import { custom, runStarts } from './session-story';

const opened = (at: number) => custom('request:opened', { request_id: `q${at}`, title: 'x'.repeat(100_000) });
const resolved = (at: number) => custom('request:resolved', { request_id: `q${at}` });

function fold(before: ReturnType<typeof newSession>, events: AgUiEvent[]) {
  const entries = events.map((event, index) => ({
    position: String(index + 1),
    occurredAt: index,
    receivedAt: index,
    event,
  }));
  return foldSession(before, placeEvents(NO_PLACES, entries).placements, []);
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

it('counts all open requests with truncated titles', () => {
  const all = upTo(MAX_OPEN_REQUESTS);
  const asked = fold(newSession('s', 'a', 0), [...runStarts('r'), ...all.flatMap(opened)]);
  expect(asked.summary.pendingRequestCount).toBe(all.length);
  expect(JSON.stringify(asked.pendingRequests).length).toBeLessThan(1_500_000);
  const half = fold(asked, all.slice(0, 200).flatMap(resolved));
  expect(half.summary.pendingRequestCount).toBe(all.length - 200);
  expect(fold(half, all.slice(200).flatMap(resolved)).summary).toMatchObject({ pendingRequestCount: 0 });
});

it('counts a repeated request or end once', () => {
  const all = upTo(MAX_PENDING_REQUESTS + 3);
  const asked = fold(newSession('s', 'a', 0), [...runStarts('r'), ...all.flatMap(opened)]);
  const again = fold(asked, [201, 201, 202, 0, 201].flatMap(opened));
  expect(again.summary.pendingRequestCount).toBe(all.length);
  const first = fold(again, [0, 0, 0, 999].flatMap(resolved));
  expect(first.summary.pendingRequestCount).toBe(all.length - 1);
  expect(fold(first, all.slice(1).flatMap(resolved)).summary).toMatchObject({ pendingRequestCount: 0 });
});

it('ignores requests beyond the limit until they are repeated', () => {
  const all = upTo(MAX_OPEN_REQUESTS + 5);
  const asked = fold(newSession('s', 'a', 0), [...runStarts('r'), ...all.flatMap(opened)]);
  expect(asked.summary.pendingRequestCount).toBe(MAX_OPEN_REQUESTS);
  expect(asked.hasMorePending).toBe(true);
  const last = all.length - 1;
  expect(fold(asked, opened(last)).summary.pendingRequestCount).toBe(MAX_OPEN_REQUESTS);
  expect(fold(asked, [...resolved(0), ...opened(last)]).summary.pendingRequestCount).toBe(MAX_OPEN_REQUESTS);
  const none = fold(asked, all.slice(0, MAX_OPEN_REQUESTS).flatMap(resolved));
  expect(none.summary).toMatchObject({ pendingRequestCount: 0, state: 'working' });
  expect(fold(asked, custom('session:ended', {})).hasMorePending).toBe(false);
});

it('shows the first requests in the inbox, then the next', () => {
  const all = upTo(MAX_PENDING_REQUESTS + 2);
  const asked = fold(newSession('s', 'a', 0), [...runStarts('r'), ...all.flatMap(opened)]);
  const named = ({ summary, pendingRequests }: typeof asked) =>
    attentionOfSession(summary, pendingRequests).map(({ request }) => request?.id);
  expect(named(asked)).toEqual(all.slice(0, MAX_PENDING_REQUESTS).map((at) => `q${at}`));
  const later = fold(asked, all.slice(0, -1).flatMap(resolved));
  expect(named(later)).toEqual([`q${all.length - 1}`]);
});
