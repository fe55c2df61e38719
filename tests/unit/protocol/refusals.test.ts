import { refusalOf } from '@interlude/protocol/agent-status-view';
import { COMMAND_TYPES } from '@interlude/protocol/commands';
import { describe, expect, test } from 'vitest';

describe('refusalOf', () => {
  test.each([null, {}, { takes: 'message' }, { takesNot: { message: 'it is asleep' } }])(
    'supports all commands if the status lists none: %j',
    (status) => {
      for (const type of COMMAND_TYPES) expect(refusalOf(status, type)).toBeNull();
    },
  );

  test('refuses an unlisted command with a reason and an alternative agent', () => {
    const instead = { agentId: 'other', sessionId: 's2' };
    const status = { takes: ['log-level.set'], takesNot: { message: 'it is a recording' }, instead };
    expect(refusalOf(status, 'log-level.set')).toBeNull();
    expect(refusalOf(status, 'message')).toEqual({ reason: 'it is a recording', instead });
    expect(refusalOf(status, 'interrupt')).toEqual({ reason: 'its runner does not support this', instead });
  });

  test('suggests a message if answers are unsupported', () => {
    for (const type of ['question.answer', 'permission.decision'] as const) {
      const reason = 'answer with a message';
      expect(refusalOf({ takes: ['message'] }, type)).toEqual({ reason, instead: null });
      expect(refusalOf({ takes: ['message'], takesNot: { [type]: 'it is busy' } }, type)?.reason).toBe('it is busy');
      expect(refusalOf({ takes: [] }, type)?.reason).toBe('its runner does not support this');
    }
  });

  test('accepts malformed fields', () => {
    const reason = 'its runner does not support this';
    for (const takesNot of [7, [], 'no', { message: {} }, { message: '' }, null]) {
      for (const instead of [7, null, [], { agentId: 1, sessionId: 's' }, { agentId: 'a' }]) {
        expect(refusalOf({ takes: [], takesNot, instead }, 'message')).toEqual({ reason, instead: null });
      }
    }
    expect(refusalOf({ takes: [], takesNot: { message: 'x'.repeat(10_000) } }, 'message')?.reason).toHaveLength(500);
  });
});
