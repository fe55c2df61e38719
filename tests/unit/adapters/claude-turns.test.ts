import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { ProcessExit } from '@interlude/runner/adapters/claude/claude-adapter';
import { describe, expect, it } from 'vitest';
import { newAdapter } from './play';
import { sdkMessages, text, toolUse } from './sdk-messages';
import { tell } from './story';

/** An adapter with its output: `feed` takes SDK messages, `story` summarizes all events. */
function session() {
  const adapter = newAdapter();
  const outputs: TimedEvent[] = [];
  const feed = (...messages: object[]) => {
    for (const message of messages) outputs.push(...adapter.read(message, 1));
  };
  const sent = (message: object) => outputs.push(...adapter.sent(message, 1));
  const ended = (exit: ProcessExit = { reason: 'exited', exitCode: 1 }) => outputs.push(...adapter.ended(2, exit));
  return { adapter, feed, sent, ended, outputs, story: () => tell(outputs), ...sdkMessages() };
}

/** A session whose user turn has started the tasks and ended. */
function withTasks(...ids: string[]) {
  const s = session();
  s.feed(s.init(['u1']), ...ids.map((id) => s.taskStarted(id)), s.assistant('m1', [text('Started.')]));
  s.feed(s.result({ user_message_uuids: ['u1'], result: 'Started.' }));
  return s;
}

const lastTurn = (s: { story: () => ReturnType<typeof tell> }) => s.story().turns.at(-1);

describe('turns', () => {
  it('hides an init without names until content follows', () => {
    const s = withTasks('build');
    s.feed(s.taskEnded('build'), s.init());
    expect(s.story().turns).toHaveLength(1);
    s.feed(s.requesting());
    expect(lastTurn(s)).toMatchObject({ kind: 'between-run', parentRunId: 'r1', startTrigger: { taskIds: ['build'] } });
  });

  it('adds the tasks of empty results to the trigger of the turn that follows', () => {
    const s = withTasks('a', 'b', 'c');
    s.feed(s.taskEnded('a'), s.taskEnded('b'), s.taskEnded('c'));
    for (const id of ['a', 'b']) s.feed(s.init(), s.result({ num_turns: 0, ...s.woken(id) }));
    s.feed(s.init(), s.assistant('m2', [text('All three.')]), s.result({ result: 'All three.', ...s.woken('c') }));
    expect(s.story().turns).toHaveLength(2);
    expect(lastTurn(s)?.trigger).toEqual({
      kind: 'task',
      taskIds: ['a', 'b', 'c'],
      taskRunIds: ['run-a', 'run-b', 'run-c'],
    });
  });

  it('keeps a notification the turn did not answer for the next one', () => {
    const s = withTasks('a', 'b');
    s.feed(s.taskEnded('a'), s.taskEnded('b'), s.init(), s.assistant('m2', [text('A.')]), s.result(s.woken('a')));
    expect(lastTurn(s)?.trigger?.taskIds).toEqual(['a']);
    s.feed(s.init(), s.assistant('m3', [text('B.')]), s.result(s.woken('b')));
    expect(lastTurn(s)).toMatchObject({ startTrigger: { taskIds: ['b'] }, trigger: { taskIds: ['b'] } });
  });

  it('moves a task to its own turn if it seemed folded into the turn before', () => {
    const s = withTasks('a');
    s.feed(s.init(['u2']), s.assistant('m2', [toolUse('t1')]), s.taskEnded('a'), s.toolResult('t1', 'ok'));
    s.feed(s.result({ user_message_uuids: ['u2'] }));
    expect(lastTurn(s)?.foldedTaskIds).toEqual(['a']);
    s.feed(s.init(), s.assistant('m3', [text('A after all.')]), s.result(s.woken('a')));
    expect(lastTurn(s)?.trigger?.taskIds).toEqual(['a']);
  });

  it('does not fold a task that ended after the last tool of the turn', () => {
    const s = withTasks('a');
    s.feed(s.init(['u2']), s.assistant('m2', [toolUse('t1')]), s.toolResult('t1', 'ok'), s.taskEnded('a'));
    s.feed(s.assistant('m3', [text('Done.')]), s.result({ user_message_uuids: ['u2'] }));
    expect(lastTurn(s)?.foldedTaskIds).toEqual([]);
  });

  it('does not end a user turn at the empty result of a notification', () => {
    const s = withTasks('a', 'b');
    s.feed(s.taskEnded('a'), s.init(['u2']), s.assistant('m2', [text('One')]));
    s.feed(s.result({ num_turns: 0, ...s.woken('a') }), s.assistant('m3', [text('Two')]));
    s.feed(s.result({ user_message_uuids: ['u2'], result: 'Two' }));
    expect(lastTurn(s)).toMatchObject({ kind: 'user', texts: ['One', 'Two'], end: 'success' });
  });

  it('does not end a user turn without text at the result of a notification', () => {
    const s = withTasks('a');
    s.feed(
      s.taskEnded('a'),
      s.init(['u2']),
      s.result({ num_turns: 0, ...s.woken('a') }),
      s.assistant('m2', [text('Yes')]),
    );
    s.feed(s.result({ user_message_uuids: ['u2'], result: 'Yes' }));
    expect(s.story().turns).toHaveLength(2);
    expect(lastTurn(s)).toMatchObject({ userMessageIds: ['u2'], texts: ['Yes'], foldedTaskIds: [] });
  });

  it('folds a stopped shell into the next user turn', () => {
    const s = withTasks('a');
    s.feed(s.taskEnded('a', { status: 'stopped', summary: 'a' }), s.init(), s.assistant('m2', [text('By myself.')]));
    expect(lastTurn(s)?.startTrigger).toEqual({ kind: 'unknown', taskIds: [] });
    s.feed(s.result());
    expect(lastTurn(s)).toMatchObject({ trigger: { kind: 'unknown' }, foldedTaskIds: ['a'] });
  });

  it('joins a prompt despite late text of the turn before', () => {
    const s = withTasks('a');
    s.feed(s.taskEnded('a'), s.init(), s.requesting(), s.assistant('m2', [text('Late.')], { late: true }));
    s.feed(s.init(['u2'], { joins: true }), s.assistant('m3', [text('Both.')]), s.result());
    const runs = s.outputs.flatMap(({ event }) => (/^RUN_/.test(event.type) ? [`${event.type} ${event.runId}`] : []));
    expect(runs.slice(2)).toEqual(['RUN_STARTED r2', 'RUN_STARTED r2', 'RUN_FINISHED r2']);
  });

  it('opens for a stopped subagent', () => {
    const s = withTasks();
    s.feed(s.taskStarted('agent', { task_type: 'local_agent' }), s.taskEnded('agent', { status: 'stopped' }));
    s.feed(s.init(), s.requesting());
    expect(lastTurn(s)?.startTrigger?.taskIds).toEqual(['agent']);
  });

  it('names user messages taken up during a between-run turn', () => {
    const s = withTasks('a');
    s.feed(s.taskEnded('a'), s.init(), s.assistant('m2', [toolUse('t1')]), s.toolResult('t1', 'ok'));
    s.feed(s.requesting({ user_message_uuids: ['u2'] }), s.assistant('m3', [text('Both.')]));
    s.feed(s.result({ ...s.woken('a'), user_message_uuids: ['u2'] }));
    expect(lastTurn(s)).toMatchObject({ kind: 'between-run', userMessageIds: ['u2'], trigger: { taskIds: ['a'] } });
  });

  it('opens a user turn at an init without names if the CLI never names messages', () => {
    const s = session();
    s.sent(s.said('Hello', 'u1'));
    s.feed(s.init(), s.assistant('m1', [text('Hi.')]), s.result({ result: 'Hi.' }));
    expect(lastTurn(s)).toMatchObject({ kind: 'user', userMessageIds: ['u1'], texts: ['Hi.'] });
  });

  it('opens none if the CLI has named messages before', () => {
    const s = session();
    s.feed(s.init(['u1']), s.result());
    s.sent(s.said('Hello', 'u2'));
    s.feed(s.init(), s.requesting());
    expect(lastTurn(s)).toMatchObject({ kind: 'between-run', startTrigger: { kind: 'unknown' } });
  });

  it('opens no turn for a tool result between turns', () => {
    const s = session();
    s.feed(s.init(['u1']), s.assistant('m1', [toolUse('t1')]), s.result(), s.toolResult('t1', 'late'));
    expect(s.story().turns).toHaveLength(1);
    expect(lastTurn(s)).toMatchObject({ end: 'success', tools: [{ result: 'late' }] });
  });

  it('reads other triggers', () => {
    const s = session();
    s.feed(s.init(['u0']), s.result({ user_message_uuids: ['u0'] }));
    const trigger = (origin: object) => {
      s.feed(s.init(), s.requesting(), s.result({ origin }));
      return lastTurn(s)?.trigger?.kind;
    };
    expect(trigger({ kind: 'task-notification', subkind: 'scheduled-trigger' })).toBe('timer');
    expect(trigger({ kind: 'peer', from: 'x' })).toBe('agent');
    expect(trigger({ kind: 'auto-continuation' })).toBe('unknown');
  });

  it('fails a turn whose result never came when the next one begins', () => {
    const s = session();
    s.feed(s.init(['u1']), s.assistant('m1', [text('One')]), s.init(['u1']), s.init(['u2']));
    s.feed(s.result({ user_message_uuids: ['u2'], result: 'Two' }));
    expect(s.story().turns.map((turn) => turn.end)).toEqual([
      expect.objectContaining({ code: 'result_missing' }),
      'success',
    ]);
    expect(lastTurn(s)?.texts).toEqual(['Two']);
  });

  it('declares missing results', () => {
    const s = session();
    s.feed(s.init(['u1']), s.result({ result_index: 0 }), s.init(['u2']), s.result({ result_index: 3 }));
    const lost = s.story().customs.filter((event) => event.name === 'interlude:lost');
    expect(lost.map((event) => event.value)).toEqual([{ count: 2, reason: 'agent-result-gap' }]);
  });

  it('counts results from zero again in a resumed process', () => {
    const s = session();
    s.feed(s.init(['u1']), s.result({ result_index: 0 }), s.init(['u2']), s.result({ result_index: 1 }));
    s.ended();
    s.feed(s.init(['u3']), s.result({ result_index: 0 }));
    expect(s.story().customs.filter((event) => event.name === 'interlude:lost')).toEqual([]);
  });

  it('opens and fails a turn for an error before any init', () => {
    const s = session();
    s.sent(s.said('Hello', 'u1'));
    s.feed(s.result({ subtype: 'error_during_execution', is_error: true, errors: ['The config file is invalid.'] }));
    expect(lastTurn(s)).toMatchObject({
      userMessageIds: ['u1'],
      end: { code: 'error_during_execution', message: 'The config file is invalid.' },
    });
  });

  it.each([
    [{ subtype: 'error_max_turns', is_error: true, errors: [] }, 'error_max_turns', 'The turn reached its step limit.'],
    [
      {
        is_error: true,
        terminal_reason: 'api_error',
        api_error_status: 529,
        result: 'API Error: 529 {"error":{"message":"Overloaded"}}',
      },
      'api_error',
      'The model API refused the request (529): Overloaded',
    ],
    [
      {
        subtype: 'error_during_execution',
        is_error: true,
        errors: ['[ede_diagnostic] x', 'Boom\n    at f (cli.js:1)'],
      },
      'error_during_execution',
      'Boom',
    ],
  ])('has a readable error for a failed turn: %#', (fields, code, message) => {
    const s = session();
    s.feed(s.init(['u1']), s.result(fields));
    expect(lastTurn(s)?.end).toEqual({ code, message });
  });

  it('shows text found only in the result', () => {
    const s = session();
    s.feed(s.init(['u1']), s.result({ num_turns: 0, result: 'Cost: $0.12', user_message_uuids: ['u1'] }));
    expect(lastTurn(s)?.texts).toEqual(['Cost: $0.12']);
  });

  it('closes everything when the process ends, once', () => {
    const s = session();
    s.feed(s.init(['u1']), s.taskStarted('a'), s.stream({ type: 'message_start', message: { id: 'm1' } }));
    s.feed(s.stream({ type: 'content_block_start', index: 0, content_block: text('') }));
    s.feed(s.stream({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Half' } }));
    s.ended();
    s.ended();
    const { turns, tasks, customs } = s.story();
    expect(turns[0]).toMatchObject({ texts: ['Half'], end: { code: 'agent_exited' } });
    expect(tasks.a?.ends).toEqual(['lost']);
    const ends = customs.filter((event) => event.name === 'session:ended').map((event) => event.value);
    expect(ends).toEqual([{ reason: 'exited', exitCode: 1 }]);
  });

  it('is cancelled if the process was stopped on request', () => {
    const s = session();
    s.feed(s.init(['u1']), s.result({ num_turns: 1 }), s.init(['u2']));
    s.ended({ reason: 'the runner was stopped', isAsked: true });
    expect(s.story().turns.map(({ end }) => end)).toEqual(['success', 'cancelled']);
  });
});

describe('tasks', () => {
  it('ends an unreported task missing from the set when the next turn begins', () => {
    const s = withTasks('a', 'b');
    s.feed(s.taskSet('a', 'b'), s.taskSet('b'));
    expect(s.story().tasks.a?.ends).toEqual([]);
    s.feed(s.init(['u2']));
    expect(s.story().tasks.a?.ends).toEqual(['lost']);
    expect(s.story().tasks.b?.ends).toEqual([]);
  });

  it('uses a patch’s status for a task without a notification', () => {
    const s = withTasks('a');
    s.feed(s.taskSet('a'), s.system('task_updated', { task_id: 'a', run_id: 'run-a', patch: { status: 'killed' } }));
    expect(s.story().tasks.a?.ends).toEqual([]);
    s.feed(s.taskSet());
    expect(s.story().tasks.a?.ends).toEqual(['stopped']);
  });

  it('starts a task whose start was lost when it is listed twice', () => {
    const s = withTasks();
    s.feed(s.taskSet('a'));
    expect(s.story().tasks).toEqual({});
    s.feed(s.taskSet('a', 'b'));
    expect(Object.keys(s.story().tasks)).toEqual(['a']);
  });

  it('ends tasks of an earlier process when the socket changes', () => {
    const s = session();
    s.feed(s.init(['u1'], { messaging_socket_path: '/run/1.sock' }), s.taskStarted('a'), s.result({ result_index: 0 }));
    s.feed(s.init(['u2'], { messaging_socket_path: '/run/2.sock' }));
    expect(s.story().tasks.a?.ends).toEqual(['lost']);
  });

  it('keeps two runs of a task apart', () => {
    const s = withTasks();
    s.feed(s.taskStarted('a', { run_id: '1' }), s.taskEnded('a', { run_id: '1', status: 'completed' }));
    s.feed(s.taskStarted('a', { run_id: '2' }), s.taskEnded('a', { run_id: '1' }), s.taskEnded('a', { run_id: '2' }));
    const completed = s.outputs.filter(({ event }) => event.name === 'task:completed').map(({ event }) => event.value);
    expect(completed).toMatchObject([
      { run_id: '1', status: 'completed', exit_code: 3 },
      { run_id: '2', status: 'failed' },
    ]);
  });

  it('shows a foreground task from the moment it moves to the background', () => {
    const s = withTasks();
    s.feed(s.taskStarted('a', { is_backgrounded: false }));
    expect(s.story().tasks).toEqual({});
    s.feed(s.system('task_updated', { task_id: 'a', run_id: 'run-a', patch: { is_backgrounded: true } }));
    s.feed(s.taskEnded('a'));
    expect(s.story().tasks.a).toMatchObject({ status: 'failed', exit_code: 3, ends: ['failed'] });
  });

  it('ends a task it never saw start', () => {
    const s = session();
    s.feed(s.taskEnded('a', { run_id: undefined, status: 'stopped', summary: 'gone' }));
    expect(s.story().tasks.a).toMatchObject({ status: 'stopped', summary: 'gone' });
  });

  it('reports progress without renaming the task', () => {
    const s = withTasks('a');
    const usage = { total_tokens: 5, tool_uses: 1, duration_ms: 9 };
    s.feed(
      s.system('task_progress', {
        task_id: 'a',
        run_id: 'run-a',
        description: 'Reading',
        usage,
        last_tool_name: 'Read',
      }),
    );
    expect(s.story().tasks.a).toMatchObject({ description: 'a', summary: 'Reading', usage, last_tool_name: 'Read' });
  });
});

describe('requests', () => {
  const asked = { tool: 'Bash', input: { command: 'rm x' }, toolUseID: 't1', description: 'Remove x' };

  it('is a question for AskUserQuestion', () => {
    const s = session();
    const input = { questions: [{ question: 'Which one?' }] };
    const [output] = s.adapter.requestOpened({ tool: 'AskUserQuestion', input, toolUseID: 't1' }, 5);
    expect(output).toMatchObject({ occurredAt: 5, event: { value: { kind: 'question', title: 'Which one?', input } } });
    const [answered] = s.adapter.requestAnswered('t1', { behavior: 'allow' }, 6);
    expect(answered?.event.value).toEqual({ request_id: 't1', outcome: 'answered' });
    expect(s.adapter.requestAnswered('t1', { behavior: 'deny' }, 7)).toEqual([]);
  });

  const meta = (non_execution_kind: string | undefined, decision: string | undefined, id = 't1') => ({
    tool_result_meta: [{ id, non_execution_kind, permission_decision: decision && { decision } }],
  });
  it.each([
    ['denied when its tool was not run for that, whatever the decision', meta('permission-rule', 'reject'), 'denied'],
    ['denied when a person rejected it', meta('user-rejected', undefined), 'denied'],
    ['cancelled when it was interrupted', meta('interrupted', undefined), 'cancelled'],
    ['allowed when its tool ran, and failed', meta(undefined, 'accept'), 'allowed'],
    ['unknown when its tool failed without a verdict', {}, 'unknown'],
    ['unknown when only another tool has a verdict', meta('permission-rule', 'reject', 't2'), 'unknown'],
  ])('was %s', (_, more, outcome) => {
    const s = session();
    s.feed(s.init(['u1']), s.assistant('m1', [toolUse('t1')]));
    s.outputs.push(...s.adapter.requestOpened(asked, 1));
    const result = { ...s.toolResult('t1', 'Lieber nicht.', { is_error: true }), ...more };
    s.feed(result, s.result());
    expect(s.story().requests).toEqual([{ id: 't1', outcomes: [outcome] }]);
    const resolved = s.outputs.find(({ event }) => event.name === 'request:resolved')?.event.value;
    expect(resolved).toMatchObject({ ...(outcome === 'denied' ? { message: 'Lieber nicht.' } : {}) });
    expect(lastTurn(s)?.tools).toEqual([{ name: 'Bash', args: {}, result: 'Lieber nicht.', isError: true }]);
  });

  it('is denied by the turn’s result or a message', () => {
    const s = session();
    s.feed(s.init(['u1']), s.assistant('m1', [toolUse('t1'), toolUse('t2')]));
    s.outputs.push(...s.adapter.requestOpened(asked, 1));
    s.outputs.push(...s.adapter.requestOpened({ ...asked, toolUseID: 't2' }, 1));
    s.feed(s.toolResult('t1', 'Lieber nicht.', { is_error: true }));
    s.feed(s.system('permission_denied', { tool_name: 'Bash', tool_use_id: 't2', message: 'Not in this mode.' }));
    s.feed(s.result({ permission_denials: [{ tool_name: 'Bash', tool_use_id: 't1', tool_input: {} }] }));
    expect(s.story().requests).toEqual([
      { id: 't1', outcomes: ['unknown', 'denied'] },
      { id: 't2', outcomes: ['denied'] },
    ]);
  });

  it('resolves as unknown when the agent continues, then by its tool', () => {
    const s = session();
    s.feed(s.init(['u1']), s.assistant('m1', [toolUse('t1')]));
    s.outputs.push(...s.adapter.requestOpened(asked, 1));
    const running = () => s.system('session_state_changed', { state: 'running' });
    s.feed(running(), running(), s.toolResult('t1', 'done'));
    expect(s.story().requests).toEqual([{ id: 't1', outcomes: ['unknown', 'allowed'] }]);
  });

  it('is new if its id was passed in an earlier turn', () => {
    const s = session();
    const ask = () => s.outputs.push(...s.adapter.requestOpened(asked, 1));
    s.feed(s.init(['u1']));
    ask();
    s.feed(s.toolResult('t1', 'no', { is_error: true }));
    ask();
    expect(s.story().requests).toEqual([{ id: 't1', outcomes: ['unknown'] }]);
    s.feed(s.result(), s.init(['u2']));
    ask();
    expect(s.outputs.at(-1)?.event).toMatchObject({ name: 'request:opened', value: { request_id: 't1' } });
  });

  it('is cancelled with its turn', () => {
    const s = session();
    s.feed(s.init(['u1']));
    s.outputs.push(...s.adapter.requestOpened(asked, 1));
    s.feed(s.result({ subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' }));
    expect(s.story().requests).toEqual([{ id: 't1', outcomes: ['cancelled'] }]);
    expect(lastTurn(s)?.end).toBe('cancelled');
  });
});

describe('messages', () => {
  it('stores unknown messages whole', () => {
    const s = session();
    const unknown = { type: 'system', subtype: 'from_the_future', uuid: 'x', deep: { field: [1] } };
    s.feed(unknown, { type: 'constructor', uuid: 'y' }, { type: 'keep_alive' });
    expect(s.story().raws).toEqual([unknown, { type: 'constructor', uuid: 'y' }]);
  });

  it('shows retries and compactions', () => {
    const s = session();
    const retry = { attempt: 2, max_retries: 10, retry_delay_ms: 4000, error_status: 529, error: 'overloaded' };
    s.feed(s.system('api_retry', retry));
    s.feed(
      s.system('compact_boundary', { compact_metadata: { trigger: 'auto', pre_tokens: 150000, post_tokens: 9000 } }),
    );
    const notices = s.story().customs.filter((event) => event.name === 'interlude:notice');
    expect(notices.map((event) => event.value)).toEqual([
      { text: 'The model API did not respond (529 overloaded). Retry 2 of 10 in 4 s.', tone: 'warning' },
      { text: 'The conversation was compacted to make room, 150,000 → 9,000 tokens.', tone: 'info' },
    ]);
  });

  it('forwards changed inits and one thinking estimate per block', () => {
    const s = session();
    s.feed(s.init(['u1']), s.system('thinking_tokens', { estimated_tokens: 3 }));
    s.feed(
      s.system('thinking_tokens', { estimated_tokens: 9 }),
      s.assistant('m1', [{ type: 'thinking', thinking: 'Hm' }]),
    );
    s.feed(s.system('thinking_tokens', { estimated_tokens: 4 }), s.assistant('m1', [text('So')]));
    s.feed(s.result(), s.init(['u2']), s.result(), s.init(['u3'], { model: 'claude-opus' }), s.result());
    const named = (name: string) => s.story().customs.filter((event) => event.name === name);
    expect(named('claude:init')).toHaveLength(2);
    const estimates = named('claude:thinking_tokens').map((event) => event.value);
    expect(estimates).toEqual([{ estimated_tokens: 9 }, { estimated_tokens: 4 }]);
  });

  it('adds a stand-in and the block for non-text content', () => {
    const s = session();
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(4000) } };
    s.sent({ type: 'user', uuid: 'u1', message: { role: 'user', content: [text('Look:'), image] } });
    s.feed(s.init(['u1']), s.assistant('m1', [toolUse('t1')]), s.toolResult('t1', '', { content: [image] }));
    expect(s.story().userMessages[0]?.text).toBe('Look:\n[image: image/png, about 3 kB]');
    expect(lastTurn(s)?.tools[0]?.result).toBe('[image: image/png, about 3 kB]');
    const content = s.outputs.find(({ event }) => event.type === 'TEXT_MESSAGE_CONTENT');
    expect(content?.event.rawEvent).toEqual([text('Look:'), image]);
  });

  it('notes how much of a huge tool result is missing', () => {
    const s = session();
    s.feed(s.init(['u1']), s.assistant('m1', [toolUse('t1')]), s.toolResult('t1', 'x'.repeat(250_000)));
    expect(lastTurn(s)?.tools[0]?.result).toMatch(/x\n… 50000 more characters are not shown\.$/);
  });

  it('drops a replayed user message and shows others', () => {
    const s = session();
    s.sent(s.said('Hello', 'u1'));
    s.feed({ ...s.said('Hello', 'u1'), isReplay: true });
    s.feed({ ...s.said('From a phone', 'u2'), isReplay: true });
    s.feed({ ...s.said('[Request interrupted by user]', 'u3') });
    expect(s.story().userMessages.map((message) => message.text)).toEqual(['Hello', 'From a phone']);
    expect(s.story().raws).toHaveLength(1);
  });

  it('corrects a streamed text from the whole message', () => {
    const s = session();
    s.feed(s.init(['u1']), s.stream({ type: 'message_start', message: { id: 'm1' } }));
    s.feed(s.stream({ type: 'content_block_start', index: 0, content_block: text('') }));
    s.feed(s.stream({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Helo wor' } }));
    s.feed(s.assistant('m1', [text('Hello world')]), s.result());
    expect(lastTurn(s)?.texts).toEqual(['Hello world']);
  });

  it.each([
    ['an empty block that never comes whole', [[''], ['Hel']], 1, ['Hello'], ['Hello']],
    ['a block whose whole message was lost', [['X'], ['Hel']], 2, ['Hello'], ['X', 'Hello']],
    ['a block when an empty one comes whole', [['X']], 1, ['', 'X'], ['X']],
  ])('finds the streamed block of a whole message past %s', (_case, blocks, stopped, wholes, expected) => {
    const s = session();
    s.feed(s.init(['u1']), s.stream({ type: 'message_start', message: { id: 'm1' } }));
    for (const [index, deltas] of blocks.entries()) {
      s.feed(s.stream({ type: 'content_block_start', index, content_block: text('') }));
      for (const said of deltas)
        s.feed(s.stream({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: said } }));
      if (index < stopped) s.feed(s.stream({ type: 'content_block_stop', index }));
    }
    s.feed(...wholes.map((whole) => s.assistant('m1', [text(whole)])), s.result());
    expect(lastTurn(s)?.texts).toEqual(expected);
  });

  it('ends parts of a broken stream when the next one starts', () => {
    const s = session();
    s.feed(s.init(['u1']), s.stream({ type: 'message_start', message: { id: 'm1' } }));
    s.feed(s.stream({ type: 'content_block_start', index: 0, content_block: text('Half') }));
    const before = s.outputs.length;
    s.feed(s.stream({ type: 'message_start', message: { id: 'm2' } }));
    expect(s.outputs.slice(before).map(({ event }) => event.type)).toEqual(['TEXT_MESSAGE_END']);
  });

  it('ends a subagent’s open parts with its task', () => {
    const s = session();
    const fields = { parent_tool_use_id: 'toolu-a' };
    s.feed(s.init(['u1']), s.taskStarted('a', { task_type: 'local_agent' }));
    s.feed(s.stream({ type: 'message_start', message: { id: 'm1' } }, fields));
    s.feed(s.stream({ type: 'content_block_start', index: 0, content_block: text('Half') }, fields));
    s.feed(s.taskEnded('a', { status: 'completed', summary: 'Half' }));
    expect(s.story().subagents).toEqual({ a: ['Half'] });
  });

  it('continues a subagent’s text past the end of a turn', () => {
    const s = session();
    const stream = (event: object) => s.stream(event, { parent_tool_use_id: 'toolu-a' });
    const delta = (words: string) =>
      stream({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } });
    s.feed(s.init(['u1']), s.taskStarted('a', { task_type: 'local_agent' }));
    s.feed(stream({ type: 'message_start', message: { id: 'm1' } }), delta('Half'), s.result(), delta(' and half'));
    expect(s.outputs.at(-1)?.event).toMatchObject({ type: 'TEXT_MESSAGE_CONTENT', delta: ' and half' });
    s.feed(s.taskEnded('a'));
    expect(s.story().subagents).toEqual({ a: ['Half and half'] });
  });

  it('writes a subagent’s text once without its task’s start', () => {
    const s = session();
    const fields = { parent_tool_use_id: 'toolu-a' };
    s.feed(s.init(['u1']), s.stream({ type: 'message_start', message: { id: 'm1' } }, fields));
    s.feed(s.stream({ type: 'content_block_start', index: 0, content_block: text('Ha') }, fields));
    s.feed(s.assistant('m1', [text('Half')], { ...fields, agent_id: 'a' }));
    expect(Object.values(s.story().subagents)).toEqual([['Half']]);
  });

  it('writes a subagent’s stream after its task’s end without the message start', () => {
    const s = session();
    const fields = { parent_tool_use_id: 'toolu-a' };
    const start = () => s.stream({ type: 'content_block_start', index: 0, content_block: text('Hi') }, fields);
    s.feed(s.init(['u1']), s.taskStarted('a', { task_type: 'local_agent' }), start(), s.taskEnded('a'), start());
    s.feed(s.result());
    s.ended();
    expect(s.story().subagents).toEqual({ a: ['Hi', 'Hi'] });
  });

  it('writes the rest of a text whose whole message comes late', () => {
    const s = session();
    s.feed(s.init(['u1']), s.stream({ type: 'message_start', message: { id: 'm1' } }));
    s.feed(s.stream({ type: 'content_block_start', index: 0, content_block: text('One') }));
    s.feed(s.stream({ type: 'message_start', message: { id: 'm2' } }));
    s.feed(s.stream({ type: 'content_block_start', index: 0, content_block: text('Three') }));
    s.feed(s.assistant('m1', [text('One two')]), s.assistant('m2', [text('Three')]), s.result());
    expect(lastTurn(s)?.texts).toEqual(['One', 'Three', ' two']);
  });

  it('keeps an image beside a streamed text', () => {
    const s = session();
    s.feed(s.init(['u1']), s.stream({ type: 'message_start', message: { id: 'm1' } }));
    s.feed(s.stream({ type: 'content_block_start', index: 0, content_block: text('Look') }));
    s.feed(s.assistant('m1', [{ type: 'image' }]), s.assistant('m1', [text('Look')]), s.result());
    expect(lastTurn(s)?.texts).toEqual(['Look', '[image]']);
  });

  it('completes the arguments of a tool call whose deltas were lost', () => {
    const s = session();
    s.feed(s.init(['u1']), s.stream({ type: 'message_start', message: { id: 'm1' } }));
    s.feed(s.stream({ type: 'content_block_start', index: 0, content_block: toolUse('t1') }));
    s.feed(
      s.stream({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"a":' } }),
    );
    s.feed(s.assistant('m1', [toolUse('t1', { a: 1 })]), s.toolResult('t1', 'ok'), s.result());
    expect(lastTurn(s)?.tools).toEqual([{ name: 'Bash', args: { a: 1 }, result: 'ok', isError: false }]);
  });
});
