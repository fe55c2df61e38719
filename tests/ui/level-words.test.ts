import type { DesiredLogLevel } from '@interlude/protocol/commands';
import type { AgentLogLevel } from '@interlude/protocol/read-models';
import { describe, expect, test } from 'vitest';
import { type LevelSource, levelText } from '@/components/logs/level-status';

const NOW = 100_000;
const WRITTEN: AgentLogLevel = { level: 'info', since: 1_000, by: null, until: null, base: 'info', desired: null };
const ASKED: DesiredLogLevel = {
  level: 'debug',
  requestedAt: NOW - 2_000,
  requestedBy: 'operator',
  expiresAt: NOW + 872_000,
  state: 'requested',
  reason: null,
};

/** The status text, with its ticking parts in braces. */
function said(level: Partial<AgentLogLevel>, agent: Partial<LevelSource> = {}): string {
  const source: LevelSource = {
    connection: 'connected',
    connectedSince: 5_000,
    ...agent,
    logLevel: { ...WRITTEN, ...level },
  };
  const { tone, parts } = levelText(source, NOW, (at) => `@${at}`);
  return `${tone}: ${parts.map(({ text, ticking }) => (ticking ? `{${text}}` : text)).join('')}`;
}

describe('levelText', () => {
  const DEBUG = { level: 'debug', since: NOW - 1_000, by: 'operator' } as const;
  const confirmed = { ...ASKED, state: 'confirmed' } as const;

  test.each<[string, Partial<AgentLogLevel>, Partial<LevelSource>, string]>([
    ['of which nothing is known', { level: null }, {}, 'plain: the runner has not reported its level'],
    ['that is the default', {}, {}, 'plain: info, its default'],
    ['without a known default', { base: null }, {}, 'plain: the runner writes info and above'],
    ['that has none above it', { level: 'fatal', base: null }, {}, 'plain: the runner writes fatal'],
    [
      'that was set by who can’t be shown as they are called',
      { ...DEBUG, by: 'me\u202e', until: NOW + 60_000 },
      {},
      'plain: debug since @99000, set by “me⟨RLO⟩”, back to info in {1 min 0 s}',
    ],
    [
      'that was set at the control port',
      { ...DEBUG, by: 'control-port', until: NOW + 60_000 },
      {},
      'plain: debug since @99000, set by control-port, back to info in {1 min 0 s}',
    ],
    [
      'that is asked',
      { desired: ASKED },
      {},
      'waiting: debug requested{ just now}, not confirmed by the runner yet; expires in {14 min 32 s}',
    ],
    [
      'that the runner has acknowledged',
      { desired: confirmed },
      {},
      'waiting: debug requested{ just now}, acknowledged by the runner',
    ],
    [
      'that is written for a time',
      { ...DEBUG, desired: confirmed },
      {},
      'plain: debug since @99000, back to info in {14 min 32 s}',
    ],
    [
      'that is written until it is changed',
      { ...DEBUG, desired: { ...confirmed, expiresAt: null } },
      {},
      'plain: debug since @99000, until changed',
    ],
    [
      'that waits for an agent that is away',
      { desired: { ...ASKED, requestedAt: NOW - 200_000, expiresAt: null } },
      { connection: 'away' },
      'waiting: debug requested{ 3 min ago}; waiting: agent offline since @5000',
    ],
    [
      'that waits for an agent that never was there',
      { desired: { ...ASKED, expiresAt: null }, level: null },
      { connection: 'away', connectedSince: null },
      'waiting: debug requested{ just now}; waiting: this agent’s runner has not connected yet',
    ],
    [
      'that is refused',
      { desired: { ...ASKED, state: 'refused', reason: 'no' } },
      {},
      'failed: debug refused: “no”; the runner logs at info',
    ],
    [
      'that somebody turned since',
      { level: 'error', since: NOW - 500, by: 'control-port', desired: confirmed },
      {},
      'waiting: the runner has reported error since @99500, set by control-port; debug was requested',
    ],
    [
      'whose time is over, though the server has not said so',
      { desired: { ...confirmed, expiresAt: NOW } },
      {},
      'plain: info, its default',
    ],
    [
      'that is to be the default',
      { ...DEBUG, desired: { ...ASKED, level: null, expiresAt: null } },
      {},
      'waiting: the default (info) requested{ just now}, not confirmed by the runner yet',
    ],
  ])('%s', (_, level, agent, sentence) => {
    expect(said(level, agent)).toBe(sentence);
  });
});
