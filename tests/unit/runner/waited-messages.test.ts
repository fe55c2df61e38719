import { WaitMessages } from '@interlude/runner/sources/hooks/message-tracker';
import { describe, expect, test } from 'vitest';

const calls = (id: string, command: string) => ({
  type: 'assistant',
  message: { content: [{ type: 'tool_use', id, name: 'Bash', input: { command } }] },
});
const notice = (id: string, status: string) =>
  `<task-notification>\n<task-id>t</task-id>\n<tool-use-id>${id}</tool-use-id>\n<status>${status}</status>\n</task-notification>`;
const woken = (id: string, status = 'completed', more: object = {}) => ({
  type: 'user',
  message: { content: notice(id, status) },
  ...more,
});

/** A wait that received a message and showed it. */
function shown(command = 'interlude wait') {
  const waited = new WaitMessages();
  expect(waited.read(calls('c1', command))).toEqual([]);
  waited.put('claim', ['m1'], 0);
  expect(waited.shown('claim', 10)).toEqual(['m1']);
  return waited;
}

describe('a message shown by a wait', () => {
  test.each([
    'interlude wait',
    'INTERLUDE_DATA_DIR=/data node /opt/interlude/lib/launch/interlude.mjs wait --for 60',
    "cd /p && node '/opt/inter lude/lib/launch/interlude.mjs' wait 2>&1",
    'npm --prefix /opt/interlude run -s interlude -- wait',
  ])('has reached the agent after the end of %s', (command) => {
    const waited = shown(command);
    expect(waited.read(woken('c1'))).toEqual(['m1']);
    expect(waited.read(woken('c1'))).toEqual([]);
    expect(waited.has('m1', 20)).toBe(false);
  });

  test('has reached the agent by a notice in a running turn', () => {
    const attachment = { type: 'queued_command', commandMode: 'task-notification', prompt: notice('c1', 'completed') };
    expect(shown().read({ type: 'attachment', attachment })).toEqual(['m1']);
  });

  test.each([
    ['another command', woken('c2')],
    ['a wait that was killed', woken('c1', 'failed')],
    ['a subagent', woken('c1', 'completed', { agentId: 'a' })],
    ['the queue', { type: 'queue-operation', content: notice('c1', 'completed') }],
  ])('has not reached the agent by the end of %s', (_, line) => {
    const waited = shown();
    expect(waited.read(calls('c2', 'echo interlude; sleep 1 # wait'))).toEqual([]);
    expect(waited.read(line)).toEqual([]);
    expect(waited.has('m1', 20)).toBe(true);
  });

  test('becomes pending again when the agent does not notice', () => {
    const waited = shown();
    expect([waited.has('m1', 80_000), waited.has('m1', 100_000)]).toEqual([true, false]);
  });
});

describe('a message handed to a wait', () => {
  test('stays in flight until it is returned', () => {
    const waited = new WaitMessages();
    waited.put('claim', ['m1'], 0);
    expect(waited.has('m1', 1_000_000)).toBe(true);
    waited.returned('claim');
    expect(waited.has('m1', 0)).toBe(false);
    expect(waited.shown('claim', 0)).toEqual([]);
  });

  test('stays in flight across a restart of the companion', () => {
    const before = new WaitMessages();
    before.put('claim', ['m1'], 0);
    const after = new WaitMessages();
    after.restore(before.all);
    expect(after.shown('claim', 5)).toEqual(['m1']);
  });
});
