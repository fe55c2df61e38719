import { expect, it } from 'vitest';
import { newSession } from '@/lib/projections/session-summary';
import { placeEvents } from '@/lib/projections/turns';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { MAX_PENDING_REQUESTS } from '@/lib/protocol/limits';
import { NO_PLACES } from '@/lib/protocol/turn-places';
import { foldSession } from '../../support/folds';
import { custom, runStarts } from './session-story';

const opened = (at: number) => custom('request:opened', { request_id: `q${at}`, title: 'x'.repeat(100_000) });
const resolved = (at: number) => custom('request:resolved', { request_id: `q${at}` });

function fold(before: ReturnType<typeof newSession>, events: AgUiEvent[]) {
  const entries = events.map((event, at) => ({ position: String(at + 1), occurredAt: at, receivedAt: at, event }));
  return foldSession(before, placeEvents(NO_PLACES, entries).placements, []);
}

it('counts every open request, remembers the first of them, and quotes no more than their beginning', () => {
  const all = Array.from({ length: MAX_PENDING_REQUESTS + 50 }, (_, at) => at);
  const asked = fold(newSession('s', 'a', 0), [...runStarts('r'), ...all.flatMap(opened)]);
  expect(asked.summary.pendingRequestCount).toBe(all.length);
  expect(asked.pendingRequests).toHaveLength(MAX_PENDING_REQUESTS);
  expect(JSON.stringify(asked.pendingRequests).length).toBeLessThan(1_000_000);
  const half = fold(asked, all.slice(0, 200).flatMap(resolved));
  expect(half.summary.pendingRequestCount).toBe(all.length - 200);
  expect(fold(half, all.slice(200).flatMap(resolved)).summary).toMatchObject({ pendingRequestCount: 0 });
});
