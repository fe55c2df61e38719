import { resolveState, type StateFacts } from '@interlude/protocol/projections/resolve-state';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { ingest, inProcessTarget, record } from '../support/ingest-target';
import { note, percentile, report } from './report';

/** Session state resolution, for each state, and the sweep for time-dependent changes. */
const SESSIONS = 10_000;
const DUE = 100;
const SWEEPS = 200;
const ROUNDS = 200_000;
const NOW = 1_795_170_000_000;

const observed = <Value>(value: Value, agoMs: number) => ({ observedAt: NOW - agoMs, turnId: 'r1', value });
const session = observed(null, 3_600_000);
const report1 = observed({ state: 'complete' as const, summary: 'All green', link: null }, 60_000);
const FACTS: StateFacts[] = [
  { session, turn: observed({ state: 'running' as const }, 5_000) },
  { session, turn: observed({ state: 'finished' as const }, 5_000), task: observed(2, 9_000) },
  { session, turn: observed({ state: 'running' as const }, 9_000), report: report1 },
  { session, turn: observed({ state: 'running' as const }, 900_000), agent: observed('compacting' as const, 9_000) },
  { session, process: observed({ code: 137, signal: null, reason: null }, 9_000), report: report1 },
  { session },
].map((observations) => ({ observations, away: null, lastHeardAt: NOW - 1_000 }));
const away = { since: NOW - 60_000, lastHeardAt: NOW - 70_000, agentGoesOn: false };
FACTS.push(...FACTS.map((facts) => ({ ...facts, away })));

let states = 0;
const resolveAll = (rounds: number) => {
  for (let round = 0; round < rounds; round += 1) {
    states += resolveState(FACTS[round % FACTS.length] as StateFacts, NOW + round).state.length;
  }
};
resolveAll(ROUNDS);
const began = performance.now();
resolveAll(ROUNDS);
report('states: resolve one', ((performance.now() - began) * 1_000) / ROUNDS, 'µs', { atMost: 5 });
if (states === 0) throw new Error('no state was resolved');

let now = NOW;
const target = await inProcessTarget(() => now);
for (let from = 0; from < SESSIONS; from += 500) {
  const records = Array.from({ length: 500 }, (_, index) => {
    const sessionId = `s${from + index}`;
    return record(from + index + 1, { sessionId, event: { type: 'RUN_STARTED', threadId: sessionId, runId: 'r' } });
  });
  await ingest(target, records);
}
const hub = new CommandHub({ database: target.database, now: () => now, steady: () => now });
await hub.sweep();
const times: number[] = [];
for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
  const startedAt = performance.now();
  await hub.sweep();
  times.push(performance.now() - startedAt);
}
report(`states: sweep of ${SESSIONS} sessions, p99`, percentile(times, 0.99), 'ms', { atMost: 50 });
// A hundred become due at once: their turns have been silent for ten minutes.
await target.database.writes.run((transaction) =>
  transaction.execute({
    sql: `UPDATE sessions SET state_due_at = ? WHERE number % ${SESSIONS / DUE} = 0`,
    args: [now],
  }),
);
const dueAt = performance.now();
await hub.sweep();
report(`states: sweep that changes ${DUE} sessions`, performance.now() - dueAt, 'ms', { atMost: 50 });
now += 200_000;
const silentAt = performance.now();
await hub.sweep();
note(`states: ${SESSIONS} sessions of a silent agent`, performance.now() - silentAt, 'ms');
await target.close();
