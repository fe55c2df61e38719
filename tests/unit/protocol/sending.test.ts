import type { Observations, SelfReport } from '@interlude/protocol/agent-state';
import { stateAt } from '@interlude/protocol/projections/resolve-state';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { sendingTo } from '@interlude/protocol/sending';
import { describe, expect, it } from 'vitest';
import { aSession } from '../../ui/rows';

const NOW = 1_795_170_000_000;
const HERE = { connection: 'connected' as const, connectedSince: NOW - 5_000 };
const AWAY = { connection: 'away' as const, connectedSince: NOW - 5_000 };
const NEVER = { connection: 'away' as const, connectedSince: null };
const seen = <Value>(value: Value, agoMs = 60_000) => ({ observedAt: NOW - agoMs, turnId: 'r1', value });
const session = { observedAt: NOW - 1_000, turnId: null, value: null };
const gone = { since: NOW - 50_000, lastHeardAt: NOW - 60_000, agentGoesOn: false };

/** A session with these observations, as it stands now. */
function having(observations: Partial<Observations>, fields: Partial<SessionSummary> = {}): SessionSummary {
  return stateAt(aSession({ observations: { session, ...observations }, lastHeardAt: NOW, ...fields }), NOW);
}

const running = { turn: seen({ state: 'running' as const }) };
const still = { turn: seen({ state: 'finished' as const }) };
const compacting = { ...running, agent: seen('compacting' as const) };
const written = { message: seen(null, 1) };
const reports = (state: SelfReport['state'], agoMs?: number) => seen({ state, summary: null, link: null }, agoMs);
const ended = { process: seen({ code: 0, signal: null, reason: 'exit' }) };

describe('a message to a session', () => {
  it.each([
    ['is idle', having(still), HERE, 'allowed', null],
    ['waits on its tasks', having({ ...still, task: seen(1) }), HERE, 'allowed', null],
    ['has failed', having({ turn: seen({ state: 'failed' as const }) }), HERE, 'allowed', null],
    ['is complete', having({ ...still, report: reports('complete') }), HERE, 'allowed', null],
    ['was interrupted', having({ turn: seen({ state: 'interrupted' as const }) }), HERE, 'allowed', null],
    ['is idle and listens', having(still, { wakeable: true }), HERE, 'allowed', null],
    ['is idle and does not listen', having(still, { wakeable: false }), HERE, 'warned', 'can’t receive messages'],
    ['works, and would not listen', having(running, { wakeable: false }), HERE, 'queued', 'next step'],
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
      'compacts',
    ],
    [
      'has just been written to while its tasks run',
      having({ ...still, ...written, task: seen(1) }),
      HERE,
      'allowed',
      null,
    ],
    ['has just been written to before it said anything', having(written), HERE, 'queued', 'starting'],
    [
      'has just been written to while it says it works',
      having({ ...written, report: reports('working') }),
      HERE,
      'queued',
      'next step',
    ],
    [
      'has just said in its turn that it is done',
      having({ ...running, report: reports('complete', 1) }),
      HERE,
      'queued',
      'next step',
    ],
    ['compacts and tells nothing for long', having(compacting, { lastHeardAt: 0 }), HERE, 'queued', 'compacts'],
    ['works', having(running), HERE, 'queued', 'next step'],
    ['compacts', having({ ...running, agent: seen('compacting' as const) }), HERE, 'queued', 'compacts'],
    ['is started again', having({ ...running, agent: seen('restarting' as const) }), HERE, 'queued', 'restarted'],
    ['is starting', having({}), HERE, 'queued', 'starting'],
    ['waits for an answer', having({ ...running, request: seen('Run rm?') }), HERE, 'queued', 'an answer'],
    ['says that it works', having({ report: reports('working') }), HERE, 'queued', 'next step'],
    [
      'has told nothing since it began',
      having({ session: seen(null) }, { lastHeardAt: NOW - 60_000 }),
      HERE,
      'warned',
      'may never be read',
    ],
    [
      'has no runner just now',
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
    ['is not taken up by the runner there is', having(running, { away: gone }), HERE, 'warned', 'may never be read'],
    ['has ended', having({ ...still, ...ended }), AWAY, 'refused', 'has ended (exit)'],
  ])('that %s', (_what, to, agent, kind, reason) => {
    const sending = sendingTo(to, agent);
    expect(sending.kind).toBe(kind);
    if (reason === null) expect(sending.reason).toBeNull();
    else expect(sending.reason).toContain(reason);
  });

  it('that has ended can be taken by a runner that has come since', () => {
    const later = { ...HERE, connectedSince: NOW - 1_000 };
    expect(sendingTo(having({ ...still, ...ended }), later).kind).toBe('allowed');
  });
});
