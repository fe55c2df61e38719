import { COMMAND_TYPES } from '@interlude/protocol/commands';
import type { CommandHandlers } from '@interlude/runner/host/source';
import { supportedCommands } from '@interlude/runner/host/status-report';
import { expect, test } from 'vitest';

const done = async () => ({ state: 'done' as const });
const ALL: Required<CommandHandlers> = {
  ...{ deliver: done, interrupt: done, end: done, stop: done, answer: done, wake: done, setWakeRule: done },
};

test('lists every supported command, even if all are supported', () => {
  expect(supportedCommands(ALL)).toEqual({ takes: [...COMMAND_TYPES] });
});

test('omits unsupported commands and gives reasons', () => {
  const { end: _, ...others } = ALL;
  const refusals = { 'session.end': 'it is ended in its terminal' };
  const { takes, takesNot } = supportedCommands({ ...others, refusals });
  expect(takes).toEqual(COMMAND_TYPES.filter((type) => type !== 'session.end'));
  expect(takesNot).toEqual(refusals);
});
