import { readAgentStatus } from '@interlude/protocol/agent-status';
import { updateLogLevel as heardIn } from '@interlude/protocol/projections/reported-status';
import type { AgentLogLevel } from '@interlude/protocol/read-models';
import { describe, expect, it } from 'vitest';

const UNHEARD: AgentLogLevel = { level: null, since: null, by: null, until: null, base: null, desired: null };
const heardLevel = (before: AgentLogLevel, status: Record<string, unknown>, at: number) =>
  heardIn(before, readAgentStatus(status), at);
const DEBUG = { logLevel: 'debug', logSwitch: { by: 'operator', until: 9, base: 'info' } };

describe('updateLogLevel', () => {
  it('sets the level from its first report', () => {
    const heard = heardLevel(UNHEARD, DEBUG, 5);
    expect(heard).toEqual({ level: 'debug', since: 5, by: 'operator', until: 9, base: 'info', desired: null });
    expect(heardLevel(heard, DEBUG, 6)).toBe(heard);
    expect(heardLevel(heard, { ...DEBUG, logSwitch: { ...DEBUG.logSwitch, until: 12 } }, 7)).toEqual({
      ...heard,
      until: 12,
    });
  });

  it('ignores a missing or invalid level', () => {
    for (const status of [{}, { logLevel: 'loud' }, { logLevel: 5 }]) {
      expect(heardLevel(UNHEARD, status, 5)).toBe(UNHEARD);
    }
  });

  it('accepts a missing or malformed author', () => {
    const level = { level: 'warn', since: 5, by: null, until: null, base: null, desired: null };
    for (const logSwitch of [undefined, null, 'x', [], { by: 5, until: 'soon', base: 'loud' }]) {
      expect(heardLevel(UNHEARD, { logLevel: 'warn', logSwitch }, 5)).toEqual(level);
    }
    const long = heardLevel(UNHEARD, { logLevel: 'warn', logSwitch: { by: 'x'.repeat(1_000) } }, 5);
    expect(long.by).toHaveLength(256);
  });
});
