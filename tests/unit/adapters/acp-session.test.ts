import { QUIET_MS } from '@interlude/runner/adapters/acp/prompt-turns';
import { describe, expect, test } from 'vitest';
import { acpFrames as session } from '../../support/acp-frames';

describe('a between-run turn', () => {
  test('ends as inferred after ten seconds of silence', () => {
    const { say, waits, lines, adapter, ends } = session();
    say('I woke up.');
    waits(QUIET_MS - 1);
    expect(lines().at(-1)).not.toMatch(/^RUN_FINISHED/);
    waits(1);
    expect(lines().at(-1)).toMatch(/^RUN_FINISHED .*"inferred":true/);
    expect(adapter.dueAt).toBeNull();
    ends();
  });

  test('stays open during a call or request', () => {
    const { call, waits, lines, adapter, pass, ends } = session();
    call('c1', { title: 'sleep', kind: 'execute', status: 'in_progress' });
    expect(adapter.dueAt).toBeNull();
    call('c1', { status: 'completed' });
    expect(adapter.dueAt).not.toBeNull();
    const toolCall = { toolCallId: 'c2', title: 'touch', kind: 'execute' };
    const params = { sessionId: 'n', toolCall, options: [{ optionId: 'y', name: 'Yes', kind: 'allow_once' }] };
    pass('in', { id: 0, method: 'session/request_permission', params });
    waits(QUIET_MS * 2);
    expect(lines().at(-1)).not.toMatch(/^RUN_FINISHED/);
    pass('in', { id: 0, method: 'session/request_permission', params });
    expect(lines().filter((line) => line.includes('request:opened'))).toHaveLength(1);
    pass('out', { id: 0, result: { outcome: { outcome: 'selected', optionId: 'y' } } });
    expect(lines().at(-1)).toMatch(/"outcome":"allowed"/);
    ends();
  });

  test('ends at the next prompt, which gets its own turn', () => {
    const { say, prompt, answer, turns, ends } = session();
    say('I woke up.');
    prompt('m1');
    say('Hello.');
    answer('m1');
    expect(turns().filter((line) => !line.startsWith('RUN_FINISHED'))).toEqual([
      ...['RUN_STARTED between-run', '"I woke up."', 'RUN_STARTED user', '"Hello."'],
    ]);
    ends();
  });

  test('begins only at content', () => {
    const { update, lines, ends } = session();
    update({ sessionUpdate: 'usage_update', used: 1, size: 2 });
    update({ sessionUpdate: 'session_info_update', title: 'T' });
    update({ sessionUpdate: 'available_commands_update', availableCommands: [{ name: 'review' }] });
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: '' } });
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: '[MODE_UPDATE] b' } });
    update({ sessionUpdate: 'current_mode_update', currentModeId: 'a' });
    expect(lines().filter((line) => line.startsWith('RUN_'))).toEqual([]);
    expect(lines().filter((line) => line.includes('notice'))).toEqual([
      'CUSTOM interlude:notice {"text":"The mode is now Do.","tone":"info"}',
      'CUSTOM interlude:notice {"text":"The mode is now Ask.","tone":"info"}',
    ]);
    ends();
  });
});

describe('an unanswered prompt', () => {
  test('ends its turn after a silence while background work runs; later content opens another turn', () => {
    const { prompt, call, say, waits, turns, answer, lines, ends } = session('Copilot');
    prompt('m1');
    call('c1', { title: 'Wait', kind: 'execute', status: 'in_progress' });
    const text = 'Command runs in background with shellId: 3. ';
    call('c1', { status: 'completed', content: [{ type: 'content', content: { type: 'text', text } }] });
    waits(QUIET_MS * 2);
    expect(turns()).toHaveLength(1);
    say('It runs.');
    waits(QUIET_MS);
    expect(lines().at(-1)).toMatch(/^RUN_FINISHED .*"userMessageIds":\["m1"\],"inferred":true/);
    say('It has ended.');
    expect(turns().at(-2)).toBe('RUN_STARTED between-run');
    answer('m1');
    expect(lines().slice(-3).join('\n')).toMatch(/task:completed .*"status":"completed"[\s\S]*RUN_FINISHED/);
    ends();
  });

  test('keeps its turn through any silence without background work', () => {
    const { prompt, say, adapter } = session();
    prompt('m1');
    say('I think about it.');
    expect(adapter.dueAt).toBeNull();
  });
});

describe('tool calls', () => {
  test('left open by codex-acp become tasks, which end with a late result', () => {
    const { prompt, call, answer, lines, ends } = session('codex-acp');
    prompt('m1');
    call('c1', { title: 'sleep 9', kind: 'execute', status: 'in_progress', rawInput: { command: 'sleep 9' } });
    answer('m1');
    expect(lines().join('\n')).toMatch(
      /task:started .*"task_id":"c1".*\n.*"summary":"Started\. The agent does not report/,
    );
    call('c1', { status: 'completed', rawOutput: { formatted_output: 'done', exit_code: 2 } });
    expect(lines().at(-1)).toBe('CUSTOM task:completed {"task_id":"c1","status":"failed","exit_code":2}');
    ends();
  });

  test('of other agents end with the turn', () => {
    const { prompt, call, answer, lines, ends } = session();
    prompt('m1');
    call('c1', { title: 'sleep 9', kind: 'execute', status: 'in_progress' });
    answer('m1', 'cancelled');
    expect(lines().join('\n')).not.toContain('task:started');
    ends();
  });

  test('fail at the end of the turn when denied, unless the agent reports a result', () => {
    const { prompt, pass, call, answer, lines, ends } = session('gemini-cli');
    const options = [{ optionId: 'n', name: 'No', kind: 'reject_once' }];
    prompt('m1');
    for (const [id, toolCallId] of ['c1', 'c2'].entries()) {
      const params = { sessionId: 'n', toolCall: { toolCallId, title: 'touch', kind: 'execute' }, options };
      pass('in', { id, method: 'session/request_permission', params });
      pass('out', { id, result: { outcome: { outcome: 'selected', optionId: 'n' } } });
    }
    call('c2', { status: 'failed', content: [{ type: 'content', content: { type: 'text', text: 'Not allowed.' } }] });
    expect(lines().filter((line) => line.startsWith('TOOL_CALL_RESULT'))).toHaveLength(1);
    answer('m1');
    const results = lines().filter((line) => line.startsWith('TOOL_CALL_RESULT'));
    expect(results[0]).toContain('Not allowed.');
    expect(results[1]).toMatch(/"toolCallId":"c1","content":"Denied\.".*"isError":true/);
    prompt('m2');
    const params = { sessionId: 'n', toolCall: { toolCallId: 'c3', title: 'touch', kind: 'execute' }, options };
    pass('in', { id: 9, method: 'session/request_permission', params });
    pass('out', { id: 9, result: { outcome: { outcome: 'cancelled' } } });
    ends();
    expect(lines().at(-1)).toMatch(/^CUSTOM session:ended/);
  });

  test('keep reused ids apart', () => {
    const { prompt, update, call, answer, lines, ends } = session();
    for (const text of ['m1', 'm2']) {
      prompt(text);
      update({ sessionUpdate: 'tool_call', toolCallId: 'call_0', title: 'Shell', kind: 'execute', status: 'pending' });
      call('call_0', { status: 'in_progress', rawInput: { command: `echo ${text}` } });
      call('call_0', { status: 'completed', content: [{ type: 'content', content: { type: 'text', text } }] });
      answer(text);
    }
    expect(lines().filter((line) => line.startsWith('TOOL_CALL_START'))).toHaveLength(2);
    const results = lines().filter((line) => line.startsWith('TOOL_CALL_RESULT'));
    expect(results.map((line) => /"content":"(\w+)"/.exec(line)?.[1])).toEqual(['m1', 'm2']);
    ends();
  });

  test('collect streamed output and the exit code', () => {
    const { prompt, call, answer, lines, ends } = session('codex-acp');
    prompt('m1');
    call('c1', {
      title: 'poll',
      kind: 'execute',
      status: 'in_progress',
      content: [{ type: 'terminal', terminalId: 't' }],
    });
    call('c1', { _meta: { terminal_output_delta: { terminal_id: 't', data: 'one ' } } });
    answer('m1');
    const _meta = { terminal_output_delta: { data: 'two' }, terminal_exit: { exit_code: 3 } };
    call('c1', { status: 'failed', _meta });
    call('c1', { _meta: { terminal_output_delta: { data: 'late' } } });
    expect(lines().slice(-2)).toEqual([
      expect.stringContaining('"content":"one two"'),
      'CUSTOM task:completed {"task_id":"c1","status":"failed","exit_code":3}',
    ]);
    ends();
  });

  test('show diffs as edits and other content as placeholders', () => {
    const { prompt, call, lines } = session();
    prompt('m1');
    call('c1', {
      title: 'Edit',
      kind: 'edit',
      status: 'completed',
      content: [
        { type: 'diff', path: '/a.txt', oldText: null, newText: 'new' },
        { type: 'content', content: { type: 'image', mimeType: 'image/png', data: 'A'.repeat(16_384) } },
        { type: 'content', content: { type: 'resource_link', uri: 'file:///b', name: 'b' } },
        { type: 'terminal', terminalId: 't1' },
      ],
    });
    expect(lines().at(-1)).toContain('[image, image/png, 12 KB]\\n[link, b, file:///b]\\n[terminal, t1]');
    expect(lines().at(-1)).toContain('{"edits":[{"path":"/a.txt","before":"","after":"new"}]}');
  });
});

test('truncates streamed output between characters and notes how much is missing', () => {
  const { update, call, told, ends } = session('@agentclientprotocol/codex-acp');
  const prints = (data: string) => call('c', { _meta: { terminal_output_delta: { data } } });
  update({ sessionUpdate: 'tool_call', toolCallId: 'c', title: 'cat', kind: 'execute', status: 'in_progress' });
  for (const data of ['x'.repeat(256 * 1024 - 1), '😀', 'yy']) prints(data);
  call('c', { status: 'completed' });
  const result = told.find(({ event }) => event.type === 'TOOL_CALL_RESULT')?.event;
  expect(String(result?.content).replaceAll('x', '')).toBe('\n… [4 characters cut]');
  ends();
});

test('a plan replaces the earlier one in its turn', () => {
  const { prompt, update, lines, ends } = session();
  prompt('m1');
  const entry = { content: 'Look', priority: 'high', status: 'pending' };
  update({ sessionUpdate: 'plan', entries: [entry] });
  update({
    sessionUpdate: 'plan',
    entries: [
      { ...entry, status: 'completed' },
      { content: 'Do', status: 'odd' },
    ],
  });
  const plans = lines().filter((line) => line.startsWith('ACTIVITY_SNAPSHOT'));
  expect(new Set(plans.map((line) => /"messageId":"([^"]+)"/.exec(line)?.[1])).size).toBe(1);
  expect(plans[1]).toContain('{"content":"Do","status":"pending"}');
  ends();
});

test('bounds ten megabytes anywhere in a frame', () => {
  const { adapter, prompt, say, call, update, pass, answer, ends } = session();
  const long = 'x'.repeat(10 * 1024 * 1024);
  prompt('m1');
  say(long);
  call('c1', { title: long, status: 'in_progress', rawInput: { command: long } });
  call('c1', { status: 'completed', content: [{ type: 'diff', path: '/a', oldText: long, newText: long }] });
  update({ sessionUpdate: 'unheard_of', what: long });
  pass('in', { method: '_some/thing', params: { what: long } });
  update({ sessionUpdate: 'plan', entries: [{ content: long, status: 'pending' }] });
  update({ sessionUpdate: 'usage_update', used: long, [long]: 1 });
  const toolCall = { toolCallId: 'c2', title: long, rawInput: { command: long } };
  const options = [
    { optionId: 'y', name: 'Yes', kind: 'allow_once' },
    { optionId: 'n', name: 'No', kind: 'reject_once' },
  ];
  pass('in', { id: 0, method: 'session/request_permission', params: { sessionId: 'n', toolCall, options } });
  expect(adapter.openRequest('n', 0)?.options).toEqual([{ id: 'n', label: 'No', kind: 'deny' }]);
  pass('in', { id: 99, error: { code: 1, message: long } });
  answer('m1');
  ends();
});

test('survives a frame nested 100,000 deep', () => {
  const { pass, update, ends } = session();
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  pass('in', { method: '_some/thing', params: { deep } });
  update({ sessionUpdate: 'tool_call', toolCallId: 'c1', title: 'x', rawInput: { deep } });
  ends();
});

describe('the output file of a command', () => {
  const result = (text: string) => ({
    status: 'completed',
    content: [{ type: 'content', content: { type: 'text', text } }],
  });
  const ofQwen = 'Background shell started.\nid: bg_1\npid: 7\noutput file: /home/me/.ssh/id_rsa\nstatus file: /x\n';
  const ofClaude =
    'Command running in background with ID: b1. Output is being written to: /home/me/secret.output. You will';
  const files = (lines: string[]) => lines.filter((line) => /^CUSTOM .*output_file/.test(line));

  test('is the one named for a background command', () => {
    const { prompt, call, lines } = session('qwen-code');
    prompt('m1');
    call('c1', { kind: 'execute', title: 'Shell', rawInput: { command: 'sleep 9', is_background: true } });
    call('c1', result(ofQwen));
    expect(files(lines())).toEqual([expect.stringMatching(/^CUSTOM task:started .*id_rsa/)]);
  });

  test('is not taken from file, page, MCP or foreground output', () => {
    const { prompt, call, lines, ends } = session('qwen-code');
    prompt('m1');
    call('c0', { kind: 'execute', title: 'Bash', rawInput: { command: 'sleep 9', run_in_background: true } });
    for (const [index, kind] of ['read', 'fetch', 'search', 'other', 'think', 'execute'].entries()) {
      call(`q${index}`, { kind, title: 'x', rawInput: { path: 'notes.txt' } });
      call(`q${index}`, result(ofQwen));
      call(`k${index}`, { kind, title: 'x', rawInput: {} });
      call(`k${index}`, { ...result(`1\n${ofClaude}`), _meta: { claudeCode: { toolName: 'Bash' } } });
    }
    const toolResponse = { backgroundTaskId: 't', outputFile: '/home/me/.ssh/id_rsa' };
    call('m', { kind: 'other', title: 'x', _meta: { claudeCode: { toolName: 'mcp__a__b', toolResponse } } });
    call('c0', result(`${ofClaude}\n`));
    expect(files(lines())).toEqual([]);
    ends();
  });
});
