import { ObligationCache } from '@interlude/runner/host/obligations';
import { note, report } from './report';

/** The stop hook's in-memory check for pending replies. The end of a turn must not wait. */
const OPEN = 20;
const ROUNDS = 20;
const CALLS = 100_000;

const about = { sessionId: 's1', from: { kind: 'person', id: 'operator' }, text: 'x'.repeat(300), sentAt: 1 };
const snapshot = new ObligationCache(
  async () => Array.from({ length: OPEN }, (_, index) => ({ messageId: `m${index}`, ...about })),
  (message) => note(message, 0, ''),
);
await snapshot.refresh();

let seen = 0;
const perCall: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const startedAt = performance.now();
  for (let call = 0; call < CALLS; call += 1) seen += snapshot.get().length;
  perCall.push(((performance.now() - startedAt) * 1_000) / CALLS);
}
perCall.sort((a, b) => a - b);
if (seen !== ROUNDS * CALLS * OPEN) throw new Error('the snapshot had an unexpected number of replies');
report(`pending-reply snapshot of ${OPEN}, slowest of ${ROUNDS} rounds`, perCall.at(-1) ?? 0, 'µs', { atMost: 1 });
note('pending-reply snapshot, median', perCall[ROUNDS / 2] ?? 0, 'µs');
