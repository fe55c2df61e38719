import type { Observations, SelfReport } from '@interlude/protocol/agent-status';
import { stateAt } from '@interlude/protocol/projections/resolve-state';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { canRetry, sendingTo } from '@interlude/protocol/sending';
import { describe, expect, it } from 'vitest';
import { aSession } from '../../ui/rows';

const NOW = 1_795_170_000_000;
const HERE = { connection: 'connected' as const, connectedSince: NOW - 5_000 };
const AWAY = { connection: 'away' as const, connectedSince: NOW - 5_000 };
const NEVER = { connection: 'away' as const, connectedSince: null };
const seen = <Value>(value: Value, agoMs = 60_000) => ({ observedAt: NOW - agoMs, turnId: 'r1', value });
const session = { observedAt: NOW - 1_000, turnId: null, value: null };
const gone = { since: NOW - 50_000, lastHeardAt: NOW - 60_000, agentGoesOn: false };

/** A session with these observations. */
function having(observations: Partial<Observations>, fields: Partial<SessionSummary> = {}): SessionSummary {
  return stateAt(aSession({ observations: { session, ...observations }, lastHeardAt: NOW, ...fields }), NOW);
}

const running = { turn: seen({ state: 'running' as const }) };
const still = { turn: seen({ state: 'finished' as const }) };
const compacting = { ...running, agent: seen('compacting' as const) };
const written = { message: seen(null, 1) };
const reports = (state: SelfReport['state'], agoMs?: number) => seen({ state, summary: null, link: null }, agoMs);
const ended = { process: seen({ code: 0, signal: null, reason: 'exit' }) };

it.each([
  ['a failed turn', { turn: seen({ state: 'failed' as const }) }, true],
  ['a crash', { process: seen({ code: 137, signal: null, reason: null }) }, false],
  ['no failure', still, false],
] as const)('%s: only a failed session whose process runs can be retried', (_name, observations, can) => {
  expect(canRetry(having(observations), null)).toBe(can);
});

describe('sendingTo', () => {
  it.each([
    ['is idle', having(still), HERE, 'allowed', null],
    ['waits on its tasks', having({ ...still, task: seen(1) }), HERE, 'allowed', null],
    ['has failed', having({ turn: seen({ state: 'failed' as const }) }), HERE, 'allowed', null],
    ['is complete', having({ ...still, report: reports('complete') }), HERE, 'allowed', null],
    ['was interrupted', having({ turn: seen({ state: 'interrupted' as const }) }), HERE, 'allowed', null],
    ['is idle and can be woken', having(still, { wakeable: true }), HERE, 'allowed', null],
    ['is idle and can’t be woken', having(still, { wakeable: false }), HERE, 'warned', 'can’t receive messages'],
    ['works and can’t be woken when idle', having(running, { wakeable: false }), HERE, 'queued', 'next step'],
    ['has just been written to', having({ ...still, ...written }), HERE, 'allowed', null],
    ['has just been written to while it works', having({ ...running, ...written }), HERE, 'queued', 'next step'],
    [
      'has just been written to while its runner sees it work',
      having({ ...still, ...written, agent: seen('running' as const) }),
      HERE,
      'queued',
      'next step',
    ],
    [
      'has just been written to while it compacts',
      having({ ...running, ...written, agent: seen('compacting' as const) }),
      HERE,
      'queued',
      'Compacting',
    ],
    [
      'has just been written to while its tasks run',
      having({ ...still, ...written, task: seen(1) }),
      HERE,
      'allowed',
      null,
    ],
    ['has just been written to before its first report', having(written), HERE, 'queued', 'Starting'],
    [
      'has just been written to while it reports work',
      having({ ...written, report: reports('working') }),
      HERE,
      'queued',
      'next step',
    ],
    [
      'has just reported in its turn that it is done',
      having({ ...running, report: reports('complete', 1) }),
      HERE,
      'queued',
      'next step',
    ],
    ['compacts without a report for long', having(compacting, { lastHeardAt: 0 }), HERE, 'queued', 'Compacting'],
    ['works', having(running), HERE, 'queued', 'next step'],
    ['compacts', having({ ...running, agent: seen('compacting' as const) }), HERE, 'queued', 'Compacting'],
    ['is restarting', having({ ...running, agent: seen('restarting' as const) }), HERE, 'queued', 'Restarting'],
    ['is starting', having({}), HERE, 'queued', 'Starting'],
    ['waits for an answer', having({ ...running, request: seen('Run rm?') }), HERE, 'queued', 'after your answer'],
    ['reports that it works', having({ report: reports('working') }), HERE, 'queued', 'next step'],
    [
      'has reported nothing since its start',
      having({ session: seen(null) }, { lastHeardAt: NOW - 60_000 }),
      HERE,
      'warned',
      'may never be read',
    ],
    [
      'has no runner at the moment',
      having(still),
      AWAY,
      'queued',
      'Agent offline. Your message will be sent when it reconnects.',
    ],
    [
      'never had a runner',
      having(still),
      NEVER,
      'queued',
      'Agent offline. Your message will be sent when it reconnects.',
    ],
    [
      'is silent',
      having(running, { away: gone }),
      AWAY,
      'warned',
      'Agent offline. Your message will be sent when it reconnects.',
    ],
    ['is not resumed by the connected runner', having(running, { away: gone }), HERE, 'warned', 'may never be read'],
    ['has ended', having({ ...still, ...ended }), AWAY, 'refused', 'has ended (exit)'],
  ])('decides for a session that %s', (_what, to, agent, kind, reason) => {
    const sending = sendingTo(to, agent);
    expect(sending.kind).toBe(kind);
    if (reason === null) expect(sending.reason).toBeNull();
    else expect(sending.reason).toContain(reason);
  });

  it('allows a message to an ended session whose runner reconnected', () => {
    const later = { ...HERE, connectedSince: NOW - 1_000 };
    expect(sendingTo(having({ ...still, ...ended }), later).kind).toBe('allowed');
  });
});
