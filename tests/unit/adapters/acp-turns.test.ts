import { profileOf } from '@interlude/runner/adapters/acp/agent-profiles';
import { QUIET_MS, SETTLE_MS } from '@interlude/runner/adapters/acp/prompt-turns';
import { describe, expect, test } from 'vitest';
import { acpFrames } from '../../support/acp-frames';

const CLAUDE = '@agentclientprotocol/claude-agent-acp';
/** claude-agent-acp for a client that asks for tasks: it marks the starts of between-run turns. */
const MARKS = { _meta: { jetbrains: { air: { version: 1, capabilities: ['asyncTasks'] } } } };
const UUID = '0b0a4b1e-0000-4000-8000-000000000001';

const agents = [
  ['claude-agent-acp', () => acpFrames(CLAUDE, MARKS)],
  ['Qwen Code', () => acpFrames('qwen-code')],
] as const;

describe.each(agents)('unmarked text between prompts from %s', (_, open) => {
  test('stays outside turns and completes after a second', () => {
    const { say, waits, lines, turns, adapter, ends } = open();
    say('Task stopped ');
    say('by user.');
    expect(turns()).toEqual(['"Task stopped by user."']);
    waits(SETTLE_MS);
    expect(lines().at(-1)).toMatch(/^TEXT_MESSAGE_END/);
    expect(adapter.dueAt).toBeNull();
    ends();
  });

  test('does not affect the next prompt’s turn', () => {
    const { say, prompt, answer, turns, ends } = open();
    say('**Model fallback:** the small one answers.');
    prompt('m1');
    say('Hello.');
    answer('m1');
    expect(turns().slice(0, -1)).toEqual([
      ...['"**Model fallback:** the small one answers."', 'RUN_STARTED user', '"Hello."'],
    ]);
    expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"userMessageIds":\["m1"\]/);
    ends();
  });

  test('stays separate from the first text of a marked turn', () => {
    const { say, pass, update, lines, ends } = open();
    say('Task stopped by user.');
    update({ sessionUpdate: 'async_task_spawned', asyncTaskId: 'autonomous-turn-1' });
    pass('in', { id: 0, method: '_qwencode/start_turn', params: { sessionId: 'n' } });
    say('I woke up.');
    const kinds = lines().map((line) => line.split(' ')[0]);
    expect(kinds.filter((kind) => kind === 'TEXT_MESSAGE_START')).toHaveLength(2);
    expect(kinds.indexOf('TEXT_MESSAGE_END')).toBeLessThan(kinds.indexOf('RUN_STARTED'));
    ends();
  });
});

describe('unmarked work between prompts', () => {
  const thinks = { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'Hm.' } };

  test.each(agents)('ends after a silence with %s', (_, open) => {
    const { update, waits, turns, ends } = open();
    update(thinks);
    expect(turns()).toEqual(['RUN_STARTED between-run']);
    waits(QUIET_MS);
    expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"inferred":true/);
    ends();
  });

  test.each(agents)('ends at the next prompt with %s', (_, open) => {
    const { update, prompt, say, answer, turns, ends } = open();
    update(thinks);
    prompt('m1');
    say('Hello.');
    answer('m1');
    expect(turns().map((line) => line.split(' ')[0])).toEqual([
      ...['RUN_STARTED', 'RUN_FINISHED', 'RUN_STARTED', '"Hello."', 'RUN_FINISHED'],
    ]);
    ends();
  });

  describe('an agent that marks only ends', () => {
    test('ends a remark (text without an id, no other content) at the next prompt', () => {
      const { prompt, say, answer, turns, ends } = acpFrames(CLAUDE);
      say('Task stopped by user.');
      prompt('m1');
      say('Hello.');
      answer('m1');
      expect(turns().map((line) => line.split(' ')[0])).toEqual([
        ...['RUN_STARTED', '"Task', 'RUN_FINISHED', 'RUN_STARTED', '"Hello."', 'RUN_FINISHED'],
      ]);
      expect(turns().at(-1)).toMatch(/\["m1"\]/);
      ends();
    });

    test('ends a text-only turn at the next message', () => {
      const { prompt, say, answer, turns, ends } = acpFrames(CLAUDE);
      say('Model ', 'a');
      prompt('m1');
      say('fallback.', 'a');
      say('Hello.', 'b');
      answer('m1');
      expect(turns().filter((line) => !line.startsWith('RUN_FINISHED'))).toEqual([
        ...['RUN_STARTED between-run', '"Model fallback."', 'RUN_STARTED user', '"Hello."'],
      ]);
      ends();
    });

    test('ends with the answer to a prompt sent during work', () => {
      const { prompt, say, call, answer, turns, adapter, ends } = acpFrames(CLAUDE);
      say('Poll came back.', 'a');
      call('c1', { title: 'look', kind: 'read', status: 'completed' });
      prompt('m1');
      say('Hello.', 'b');
      answer('m1');
      expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"userMessageIds":\["m1"\]/);
      expect(adapter.dueAt).toBeNull();
      ends();
    });
  });
});

describe('the rest of a message after its turn', () => {
  const snapshots = (lines: string[]) => lines.filter((line) => line.startsWith('MESSAGES_SNAPSHOT'));

  test('extends the message and begins no turn', () => {
    const { prompt, say, answer, turns, lines, ends } = acpFrames();
    prompt('m1');
    say('It is ', 'a');
    answer('m1');
    say('done', 'a');
    say('.', 'a');
    expect(turns().filter((line) => line.startsWith('RUN_STARTED'))).toHaveLength(1);
    expect(snapshots(lines()).at(-1)).toBe(
      'MESSAGES_SNAPSHOT {"messages":[{"id":"a","role":"assistant","content":"It is done."}]}',
    );
    ends();
  });

  test('extends the message during the next turn', () => {
    const { prompt, say, answer, turns, lines, ends } = acpFrames();
    prompt('m1');
    say('It is ', UUID);
    answer('m1');
    prompt('m2');
    say('done.', UUID);
    say('Hello.', 'b');
    answer('m2');
    expect(snapshots(lines())).toHaveLength(1);
    expect(turns().filter((line) => line.startsWith('"'))).toEqual(['"It is "', '"Hello."']);
    ends();
  });

  const counted = ['1', 'assistant-message-1', 'message-000000000001', 'thisPromptsMessage2'];
  test.each(counted)('is a new message if the agent restarts its ids (%s)', (id) => {
    const { prompt, say, answer, lines, turns, ends } = acpFrames();
    for (const text of ['m1', 'm2']) {
      prompt(text);
      say(`Reply to ${text}.`, id);
      answer(text);
    }
    expect(snapshots(lines())).toEqual([]);
    expect(turns().filter((line) => line.startsWith('"'))).toEqual(['"Reply to m1."', '"Reply to m2."']);
    ends();
  });

  test('extends a thought', () => {
    const { prompt, update, answer, lines, ends } = acpFrames();
    const thinks = (text: string) =>
      update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text }, messageId: 'a' });
    prompt('m1');
    thinks('Hm');
    answer('m1');
    thinks('.');
    expect(lines().at(-1)).toBe('MESSAGES_SNAPSHOT {"messages":[{"id":"a","role":"reasoning","content":"Hm."}]}');
    ends();
  });

  test('stays outside turns if the message is too long to repeat', () => {
    const { prompt, say, answer, turns, ends } = acpFrames();
    prompt('m1');
    say('x'.repeat(100_000), 'a');
    answer('m1');
    say('.', 'a');
    expect(turns().filter((line) => line.startsWith('RUN_STARTED'))).toHaveLength(1);
    expect(turns().at(-1)).toBe('"."');
    ends();
  });
});

describe('session notices', () => {
  const notices = (lines: string[]) => lines.filter((line) => line.startsWith('CUSTOM interlude:notice'));

  test('show a notice with the tone of its severity', () => {
    const { update, lines, ends } = acpFrames();
    update({ sessionUpdate: 'notice', severity: 'warning', title: 'MCP server unavailable', description: 'Going on.' });
    update({ sessionUpdate: 'notice', severity: '_grave', title: 'Odd' });
    update({ sessionUpdate: 'notice', severity: 'info' });
    expect(notices(lines())).toEqual([
      'CUSTOM interlude:notice {"text":"MCP server unavailable: Going on.","tone":"warning"}',
      'CUSTOM interlude:notice {"text":"Odd","tone":"info"}',
    ]);
    expect(lines().at(-1)).toMatch(/^RAW /);
    expect(lines().filter((line) => line.startsWith('RUN_'))).toEqual([]);
    ends();
  });

  test('show the start and end of a compaction once', () => {
    const { update, lines, ends } = acpFrames();
    const compaction = (about: object) => update({ sessionUpdate: 'compaction_update', compactionId: 'c', ...about });
    compaction({ status: 'in_progress' });
    compaction({ status: 'in_progress' });
    update({ sessionUpdate: 'compaction_summary_chunk', compactionId: 'c', content: { type: 'text', text: 'S' } });
    compaction({ status: 'failed', error: 'no room' });
    compaction({ status: 'constructor' });
    expect(notices(lines())).toEqual([
      'CUSTOM interlude:notice {"text":"The agent is compacting the conversation.","tone":"info"}',
      'CUSTOM interlude:notice {"text":"The conversation could not be compacted: no room","tone":"error"}',
    ]);
    expect(lines().filter((line) => line.startsWith('RUN_'))).toEqual([]);
    ends();
  });
});

describe('state_update', () => {
  const state = (update: (given: object) => void, given: string, stopReason?: string) =>
    update({ sessionUpdate: 'state_update', state: given, stopReason });

  test('ends an accepted prompt’s turn (ACP v2)', () => {
    const { update, prompt, pass, say, turns, ends } = acpFrames('some-agent', { protocolVersion: 2 });
    prompt('m1');
    pass('in', { id: 10, result: {} });
    state(update, 'running');
    say('Hello.', UUID);
    state(update, 'requires_action');
    state(update, 'running');
    expect(turns()).toEqual(['RUN_STARTED user', '"Hello."']);
    state(update, 'idle', 'cancelled');
    expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"cancelled".*"userMessageIds":\["m1"\]/);
    state(update, 'running');
    state(update, 'idle', 'end_turn');
    expect(turns().slice(-2)[0]).toBe('RUN_STARTED between-run');
    prompt('m2');
    pass('in', { id: 11, result: {} });
    state(update, 'running');
    state(update, 'idle', 'end_turn');
    expect(turns().at(-1)).toMatch(/"userMessageIds":\["m2"\]/);
    ends();
  });

  test('ends a prompt’s turn only if no answer follows (ACP v1)', () => {
    const { update, prompt, answer, say, waits, turns, ends } = acpFrames();
    prompt('m1');
    say('Hello.');
    state(update, 'idle', 'end_turn');
    expect(turns()).toHaveLength(2);
    answer('m1', 'cancelled');
    expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"cancelled"/);
    prompt('m2');
    state(update, 'idle', 'end_turn');
    waits(SETTLE_MS);
    expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"userMessageIds":\["m2"\]/);
    ends();
  });
});

describe('a prompt refused because the session is lost', () => {
  const lost = { code: -32_002, message: 'Resource not found', data: { sessionId: 'n' } };

  test('keeps its turn when sent again', () => {
    const { prompt, fail, say, answer, turns, ends } = acpFrames();
    prompt('m1');
    fail('m1', lost);
    prompt('m1');
    say('Hello.');
    answer('m1');
    expect(turns().map((line) => line.split(' ')[0])).toEqual(['RUN_STARTED', '"Hello."', 'RUN_FINISHED']);
    ends();
  });

  test('fails when another prompt is sent', () => {
    const { prompt, fail, turns, ends } = acpFrames();
    prompt('m1');
    fail('m1', lost);
    prompt('m2');
    expect(turns()[1]).toMatch(/^RUN_ERROR .*Resource not found.*\["m1"\]/);
    expect(turns()[2]).toBe('RUN_STARTED user');
    ends();
  });

  test('begins no turn with an agent whose turns begin at content', () => {
    const { prompt, fail, turns, ends } = acpFrames(CLAUDE, MARKS);
    prompt('m1');
    fail('m1', lost);
    expect(turns()).toEqual([]);
    ends();
  });

  test.each([
    { ...lost, data: { uri: 'file:///gone.txt' } },
    { code: -32_603, message: 'Internal error', data: { details: 'MCP server "docs": Session not found' } },
  ])('fails normally if another resource is missing', (error) => {
    const { prompt, fail, turns, ends } = acpFrames();
    prompt('m1');
    fail('m1', error);
    expect(turns().at(-1)).toMatch(/^RUN_ERROR/);
    ends();
  });
});

test('fails a codex-acp turn by its thread status despite a success answer', () => {
  const { prompt, update, say, answer, turns, ends } = acpFrames('@agentclientprotocol/codex-acp');
  const thread = (type: string) =>
    update({ sessionUpdate: 'session_info_update', _meta: { codex: { threadStatus: { type } } } });
  for (const [text, status] of [
    ['m1', 'systemError'],
    ['m2', 'idle'],
  ] as const) {
    prompt(text);
    thread('active');
    say('Bad request.');
    thread(status);
    answer(text);
  }
  expect(turns().filter((line) => /^RUN_(FIN|ERR)/.test(line))).toEqual([
    expect.stringMatching(/^RUN_ERROR .*See its last message/),
    expect.stringMatching(/^RUN_FINISHED/),
  ]);
  ends();
});

describe('a task of claude-agent-acp', () => {
  const sdk = (pass: (dir: 'in', msg: object) => void, message: object) =>
    pass('in', { method: '_claude/sdkMessage', params: { sessionId: 'n', message: { type: 'system', ...message } } });
  const ended = { sessionUpdate: 'async_task_state_update', asyncTaskId: 't', state: 'failed' };
  const ends = (lines: string[]) => lines.filter((line) => line.startsWith('CUSTOM task:completed'));

  test('ends by an update if no SDK message follows', () => {
    const { pass, update, waits, lines, adapter } = acpFrames(CLAUDE, MARKS);
    sdk(pass, { subtype: 'task_started', task_id: 't' });
    update(ended);
    expect(ends(lines())).toEqual([]);
    waits(SETTLE_MS);
    expect(ends(lines())).toEqual([expect.stringMatching(/"status":"failed"/)]);
    expect(adapter.dueAt).toBeNull();
  });

  test('ends with the SDK’s summary if it follows', () => {
    const { pass, update, waits, lines } = acpFrames(CLAUDE, MARKS);
    sdk(pass, { subtype: 'task_started', task_id: 't' });
    update(ended);
    sdk(pass, { subtype: 'task_notification', task_id: 't', status: 'failed', summary: 'failed with exit code 3' });
    waits(SETTLE_MS);
    expect(ends(lines())).toEqual([expect.stringMatching(/"exit_code":3/)]);
  });

  test('is lost with its session', () => {
    const { pass, prompt, fail, lines } = acpFrames(CLAUDE, MARKS);
    sdk(pass, { subtype: 'task_started', task_id: 't' });
    prompt('m1');
    fail('m1', { code: -32_002, message: 'Resource not found', data: { sessionId: 'n' } });
    expect(ends(lines())).toEqual([expect.stringMatching(/"status":"lost"/)]);
  });
});

describe('a turn cancelled before the agent ends it', () => {
  const cancel = { method: 'session/cancel', params: { sessionId: 'n' } };

  test.each(['qwen-code', 'some-agent'])('is cancelled whatever %s answers', (name) => {
    const { prompt, say, pass, answer, turns, ends } = acpFrames(name);
    prompt('m1');
    say('Hello.');
    pass('out', cancel);
    answer('m1');
    expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"cancelled".*\["m1"\]/);
    prompt('m2');
    say('Hello again.');
    answer('m2');
    expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"success".*\["m2"\]/);
    ends();
  });

  test('is cancelled without content', () => {
    const { prompt, pass, answer, turns, ends } = acpFrames('qwen-code');
    prompt('m1');
    pass('out', cancel);
    answer('m1');
    expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"cancelled".*\["m1"\]/);
    ends();
  });

  test('is cancelled as a between-run turn', () => {
    const { pass, say, turns, ends } = acpFrames('qwen-code');
    pass('in', { id: 0, method: '_qwencode/start_turn', params: { sessionId: 'n' } });
    say('I woke up.');
    pass('out', cancel);
    pass('in', { method: '_qwencode/end_turn', params: { sessionId: 'n', reason: 'end_turn' } });
    expect(turns().at(-1)).toMatch(/^RUN_FINISHED .*"cancelled"/);
    ends();
  });
});

test('claude-agent-acp marks turn starts only with the task capability', () => {
  const agentInfo = { name: CLAUDE };
  expect(profileOf({ agentInfo }).marksTurns).toBe('ends');
  expect(profileOf({ agentInfo, ...MARKS }).marksTurns).toBe('both');
  expect(profileOf({ agentInfo: { name: 'constructor' }, ...MARKS }).marksTurns).toBeUndefined();
});
