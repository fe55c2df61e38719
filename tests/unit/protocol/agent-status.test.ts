import { readAgentStatus, reporterOf } from '@interlude/protocol/agent-status';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const WHOLE = {
  kind: 'claude',
  source: 'sdk',
  cwd: '/project',
  runner: { id: 'r1', pid: 7, startedAt: 5 },
  versions: { runner: '0.1.0', protocol: '1', provider: 'Claude Code 2.1.329' },
  everyMs: 10_000,
  takes: ['message', 'log-level.set'],
  takesNot: { interrupt: 'press Esc there' },
  process: { state: 'running', pid: 8, exitCode: null },
  openTurnId: 't1',
  tasks: [{ id: 'b1', description: 'Poll' }],
  requests: ['q1'],
  pendingMessages: 0,
  outbox: { depth: 2, oldestAgeMs: 40, poisoned: 0, lost: 0 },
  logLevel: 'info',
  logSwitch: { by: 'operator', until: 9, base: 'info' },
};

describe('readAgentStatus', () => {
  it('returns a well-formed status unchanged, with unknown fields', () => {
    const status = { ...WHOLE, mood: { good: true } };
    expect(readAgentStatus(status)).toEqual(status);
    expect(reporterOf(status)).toEqual({ runner: WHOLE.runner, everyMs: 10_000 });
  });

  it.each(Object.keys(WHOLE))('drops a malformed %s and keeps the other fields', (name) => {
    const other = { [name]: { odd: [] } };
    const { [name as keyof typeof WHOLE]: _, ...others } = WHOLE;
    expect(readAgentStatus({ ...WHOLE, ...other })).toMatchObject(others);
  });

  it('accepts any status record', () => {
    const values = fc.dictionary(fc.constantFrom(...Object.keys(WHOLE), 'x'), fc.jsonValue());
    fc.assert(fc.property(values, (status) => void [readAgentStatus(status), reporterOf(status)]));
    expect([readAgentStatus(null), reporterOf(null)]).toEqual([{}, {}]);
  });
});
