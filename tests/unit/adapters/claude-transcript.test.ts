import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { TranscriptAdapter } from '@interlude/runner/adapters/claude/transcript-adapter';
import { describe, expect, test } from 'vitest';

/** session-mirror.test.ts covers a recorded day; these cases did not occur in it. */

function reader() {
  const adapter = new TranscriptAdapter({ sessionId: 's1' });
  const events: AgUiEvent[] = [];
  let count = 0;
  const read = (line: object) => {
    count += 1;
    const named = { uuid: `u${count}`, ...line };
    events.push(...adapter.read(named, `k${count}`, count).map(({ event }) => event));
  };
  return { adapter, events, read };
}

const prompt = (content: string, more: object = {}) => ({ type: 'user', message: { role: 'user', content }, ...more });
const over = { type: 'system', subtype: 'turn_duration', durationMs: 5 };
const notification = (id: string, summary: string) =>
  `<task-notification>\n<task-id>${id}</task-id>\n<status>completed</status>\n<summary>${summary}</summary>\n</task-notification>`;
const customs = (events: AgUiEvent[], name: string) =>
  events.filter((event) => event.name === name).map(({ value }) => value);

describe('a transcript', () => {
  test('of an older CLI without origins has turns', () => {
    const { events, read } = reader();
    read(prompt('Hello'));
    read({ type: 'assistant', message: { id: 'm1', content: [{ type: 'text', text: 'Hi' }] } });
    read(over);
    expect(events.map(({ type }) => type)).toEqual([
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_STARTED'],
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_FINISHED'],
    ]);
  });

  test('puts input typed during a turn into that turn', () => {
    const { events, read } = reader();
    read(prompt('First'));
    read({
      type: 'attachment',
      attachment: { type: 'queued_command', commandMode: 'prompt', prompt: 'And this', source_uuid: 'queued-1' },
    });
    read(over);
    expect(events.at(-1)?.metadata?.interlude?.userMessageIds).toEqual(['u1', 'queued-1']);
  });

  test('writes a queued notification once', () => {
    const { events, read } = reader();
    const text = notification('t1', 'Background command "Poll" completed (exit code 0)');
    read({ type: 'queue-operation', uuid: undefined, operation: 'enqueue', content: text });
    read({ type: 'queue-operation', uuid: undefined, operation: 'dequeue' });
    read(prompt(text, { origin: { kind: 'task-notification' } }));
    read(over);
    expect(customs(events, 'task:completed')).toMatchObject([{ task_id: 't1', status: 'completed', exit_code: 0 }]);
    expect(events.find(({ type }) => type === 'RUN_STARTED')?.metadata?.interlude).toMatchObject({
      turn: 'between-run',
      trigger: { kind: 'task', taskIds: ['t1'] },
    });
  });

  test('without a terminal closes each turn at the next one', () => {
    const { adapter, events, read } = reader();
    const last = (text: string) => ({
      type: 'assistant',
      message: { id: `m ${text}`, stop_reason: 'end_turn', content: [{ type: 'text', text }] },
    });
    read(prompt('First'));
    read(last('One'));
    read(prompt('Second'));
    read(last('Two'));
    events.push(...adapter.stopped(9).map(({ event }) => event));
    const ends = events.filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR');
    expect(ends.map(({ type, metadata }) => [type, metadata?.interlude?.userMessageIds])).toEqual([
      ['RUN_FINISHED', ['u1']],
      ['RUN_FINISHED', ['u3']],
    ]);
  });

  test('fails a turn cut off at a tool call by another prompt', () => {
    const { events, read } = reader();
    read(prompt('First'));
    const content = [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} }];
    read({ type: 'assistant', message: { id: 'm1', stop_reason: 'tool_use', content } });
    read(prompt('Second'));
    read(over);
    const ends = events.filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR');
    expect(ends.map(({ type }) => type)).toEqual(['RUN_ERROR', 'RUN_FINISHED']);
    expect(ends.at(-1)?.metadata?.interlude?.userMessageIds).toEqual(['u3']);
  });

  test('has one turn for notifications delivered together', () => {
    const { events, read } = reader();
    const origin = { kind: 'task-notification' };
    const texts = ['t1', 't2'].map((id) => notification(id, `Background command "${id}" completed (exit code 0)`));
    for (const content of texts) read({ type: 'queue-operation', uuid: undefined, operation: 'enqueue', content });
    for (const text of texts) read(prompt(text, { origin }));
    read({ type: 'assistant', message: { id: 'm1', content: [{ type: 'text', text: 'Both ended.' }] } });
    read(over);
    const runs = events.filter(({ type }) => type.startsWith('RUN_'));
    expect(runs.map(({ type }) => type)).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
    const taskIds = runs.map(({ metadata }) => metadata?.interlude?.trigger?.taskIds);
    // The second line is not known yet at the start.
    expect(taskIds).toEqual([['t1'], ['t1', 't2']]);
  });

  test('attributes a task end during a turn’s start to the turn that receives it', () => {
    const { events, read } = reader();
    const text = (id: string) => notification(id, `Background command "${id}" completed (exit code 0)`);
    const queue = (operation: string, content?: string) =>
      read({ type: 'queue-operation', uuid: undefined, operation, content });
    const told = (id: string) => read(prompt(text(id), { origin: { kind: 'task-notification' } }));
    const says = (
      words: string,
      more: object = { stop_reason: 'end_turn', content: [{ type: 'text', text: words }] },
    ) => read({ type: 'assistant', message: { id: `m ${words}`, ...more } });
    queue('enqueue', text('t1'));
    queue('dequeue');
    for (const id of ['t2', 't3', 't4']) queue('enqueue', text(id));
    told('t1');
    // The turn continues and receives another notification.
    says('looks', { stop_reason: 'tool_use', content: [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }] });
    read({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'so' }] } });
    const attachment = { type: 'queued_command', commandMode: 'task-notification', prompt: text('t2') };
    read({ type: 'attachment', attachment });
    says('Of one and two');
    told('t3');
    told('t4');
    says('Of three and four');
    read(over);
    const ends = events.filter(({ type }) => type === 'RUN_FINISHED').map(({ metadata }) => metadata?.interlude);
    expect(ends.map((end) => [end?.trigger?.taskIds, end?.foldedTaskIds])).toEqual([
      [['t1'], ['t2']],
      [['t3', 't4'], undefined],
    ]);
  });

  test('gives a notification after a cut-off turn to the new turn only', () => {
    const { events, read } = reader();
    read(prompt('First'));
    const content = [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} }];
    read({ type: 'assistant', message: { id: 'm1', stop_reason: 'tool_use', content } });
    const text = notification('t1', 'Background command "Poll" completed (exit code 0)');
    read({ type: 'queue-operation', uuid: undefined, operation: 'enqueue', content: text });
    read(prompt(text, { origin: { kind: 'task-notification' } }));
    read({
      type: 'assistant',
      message: { id: 'm2', stop_reason: 'end_turn', content: [{ type: 'text', text: 'So.' }] },
    });
    read(over);
    const ends = events.filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR');
    expect(ends.map(({ type, metadata }) => [type, metadata?.interlude?.trigger?.taskIds])).toEqual([
      ['RUN_ERROR', undefined],
      ['RUN_FINISHED', ['t1']],
    ]);
    expect(ends[0]?.metadata?.interlude).not.toHaveProperty('foldedTaskIds');
  });

  test('does not deliver a subagent’s notification to the agent', () => {
    const { events, read } = reader();
    const text = notification('t1', 'Background command "Poll" completed (exit code 0)');
    read(prompt('First'));
    const attachment = { type: 'queued_command', commandMode: 'task-notification', prompt: text };
    read({ type: 'attachment', agentId: 'a1', attachment });
    read({
      type: 'assistant',
      message: { id: 'm1', stop_reason: 'end_turn', content: [{ type: 'text', text: 'So.' }] },
    });
    read(over);
    expect(customs(events, 'task:completed')).toMatchObject([{ task_id: 't1' }]);
    expect(events.at(-1)?.metadata?.interlude).not.toHaveProperty('foldedTaskIds');
  });

  test('writes a question answered before its hook, once', () => {
    const { adapter, events, read } = reader();
    const ask = (command: string, now: number) =>
      events.push(...adapter.requestOpened('Bash', { command }, {}, now).map(({ event }) => event));
    const call = (id: string, command: string) => {
      const content = [{ type: 'tool_use', id, name: 'Bash', input: { command } }];
      read({ type: 'assistant', message: { id: `m ${id}`, stop_reason: 'tool_use', content } });
    };
    const result = (id: string, more: object = {}) =>
      read({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: id, content: 'No.' }] }, ...more });
    read(prompt('First'));
    call('c1', 'rm a');
    result('c1', { toolDenialKind: 'permission-denied' });
    ask('rm a', 10);
    expect(customs(events, 'request:opened')).toMatchObject([{ request_id: 'c1' }]);
    expect(customs(events, 'request:resolved')).toMatchObject([
      { request_id: 'c1', outcome: 'denied', message: 'No.' },
    ]);
    // A request for an equal call that is not written yet.
    ask('rm a', 11);
    expect(customs(events, 'request:opened')).toHaveLength(1);
    call('c2', 'rm a');
    result('c2');
    expect(customs(events, 'request:resolved')).toMatchObject([{}, { request_id: 'c2', outcome: 'allowed' }]);
  });

  describe('matches a hook to its call', () => {
    /** @returns ids of calls with open requests, in order */
    const opened = (calls: readonly [id: string, input: object][], tool: string, asked: object) => {
      const { adapter, events, read } = reader();
      read(prompt('First'));
      const content = calls.map(([id, input]) => ({ type: 'tool_use', id, name: tool, input }));
      read({ type: 'assistant', message: { id: 'm1', stop_reason: 'tool_use', content } });
      events.push(...adapter.requestOpened(tool, asked, {}, 10).map(({ event }) => event));
      return customs(events, 'request:opened').map((value) => (value as { request_id: string }).request_id);
    };
    const options = [{ description: 'd', label: 'Yes' }];

    test('with the input in schema order and with defaults', () => {
      const written = { questions: [{ options, header: 'Ok', question: 'Is it ok?' }] };
      const asked = {
        questions: [
          { question: 'Is it ok?', header: 'Ok', options: [{ label: 'Yes', description: 'd' }], multiSelect: false },
        ],
      };
      expect(opened([['c1', written]], 'AskUserQuestion', asked)).toEqual(['c1']);
    });

    test.each([
      ['in another order', { replace_all: false, file_path: '/a' }, { file_path: '/a', replace_all: false }],
      ['without what its tool does not know', { plan: 'Build it' }, {}],
      ['with a plan from its file', {}, { plan: 'Build it', planFilePath: '/p.md' }],
      ['with a value of the type that its tool wants', { timeout: '5' }, { timeout: 5 }],
    ])('with the input %s', (_, written, asked) => {
      expect(opened([['c1', written]], 'ExitPlanMode', asked)).toEqual(['c1']);
    });

    test('preferring an equal input', () => {
      const same = { command: 'ls', timeout: 5 };
      const calls: [string, object][] = [
        ['c1', { command: 'ls' }],
        ['c2', same],
      ];
      expect(opened(calls, 'Bash', same)).toEqual(['c2']);
    });

    test.each([
      ['another command', { command: 'rm a', run: true }, { command: 'rm b', run: true }],
      ['another value below', { questions: [{ question: 'A?' }] }, { questions: [{ question: 'B?' }] }],
      [
        'one question less',
        { questions: [{ question: 'A?' }, { question: 'B?' }] },
        { questions: [{ question: 'A?' }] },
      ],
      ['no text', { command: { toString: 1 } }, { command: '[object Object]' }],
    ])('and no other: %s', (_, written, asked) => {
      expect(opened([['c1', written]], 'Bash', asked)).toEqual([]);
    });
  });

  test('does not match an old question to the same call much later', () => {
    const { adapter, events } = reader();
    const at = (seconds: number) => new Date(seconds * 1_000).toISOString();
    adapter.read({ ...prompt('First'), uuid: 'u1', timestamp: at(1) }, 'k1', 0);
    adapter.requestOpened('Bash', { command: 'ls' }, {}, 2_000);
    const content = [{ type: 'tool_use', id: 'c1', name: 'Bash', input: { command: 'ls' } }];
    const line = { type: 'assistant', uuid: 'u2', timestamp: at(90), message: { id: 'm1', content } };
    events.push(...adapter.read(line, 'k2', 0).map(({ event }) => event));
    expect(customs(events, 'request:opened')).toEqual([]);
  });

  test('reads a background command’s output file only from its own launch', () => {
    const { events, read } = reader();
    read(prompt('Go'));
    const calls = ['toolu_1', 'toolu_2'].map((id) => ({ type: 'tool_use', id, name: 'Bash', input: { command: 'x' } }));
    read({ type: 'assistant', message: { id: 'm1', content: calls } });
    const says = (id: string) =>
      `Command running in background with ID: b1. Output is being written to: /tmp/${id}/b1.output. You will be notified.`;
    const result = (id: string, toolUseResult: object) =>
      read({
        type: 'user',
        message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: says(id) }] },
        toolUseResult,
      });
    result('toolu_1', { backgroundTaskId: 'b1' });
    // Another command's output says nothing about the first.
    result('toolu_2', { stdout: says('toolu_2') });
    expect(customs(events, 'task:updated')).toMatchObject([{ task_id: 'b1', output_file: '/tmp/toolu_1/b1.output' }]);
  });

  test('ends every task of a notification', () => {
    const { events, read } = reader();
    const ids = ['b1', 'b2', '__orphan_summary__:shell'].map((id) => `<task-id>${id}</task-id>`).join('');
    const text = `<task-notification>${ids}<status>stopped</status><summary>2 tasks</summary></task-notification>`;
    read(prompt(text, { origin: { kind: 'task-notification' } }));
    read(over);
    expect(customs(events, 'task:completed')).toMatchObject([
      { task_id: 'b1', status: 'stopped' },
      { task_id: 'b2', status: 'stopped' },
    ]);
    expect(events.at(-1)?.metadata?.interlude?.trigger?.taskIds).toEqual(['b1', 'b2']);
  });

  test('gives a subagent that ends again a second run', () => {
    const { adapter, events, read } = reader();
    read(prompt('Go'));
    const call = { type: 'tool_use', id: 'toolu_1', name: 'Agent', input: { description: 'Explore', prompt: 'Look' } };
    read({ type: 'assistant', message: { id: 'm1', content: [call] } });
    read({
      type: 'user',
      message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'launched' }] },
      toolUseResult: { isAsync: true, agentId: 'a1' },
    });
    expect(customs(events, 'task:started')).toMatchObject([{ task_id: 'a1', description: 'Explore' }]);
    const origin = { kind: 'task-notification' };
    read(prompt(notification('a1', 'Agent "Explore" finished'), { origin }));
    read(prompt(notification('a1', 'Agent "Explore" finished again'), { origin }));
    expect(customs(events, 'task:started')).toMatchObject([{ task_id: 'a1' }, { task_id: 'a1', run_id: 'a1-2' }]);
    expect(customs(events, 'task:completed')).toMatchObject([{ task_id: 'a1' }, { task_id: 'a1', run_id: 'a1-2' }]);
    expect(adapter.tasks.subagents).toEqual(['a1']);
  });

  test('fails a turn on a model API error', () => {
    const { events, read } = reader();
    read(prompt('Go'));
    const content = [{ type: 'text', text: 'API Error: 529 overloaded' }];
    read({ type: 'assistant', isApiErrorMessage: true, message: { id: 'm1', content } });
    read(over);
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'api_error' });
  });

  test('marks only the next text as a reply to a delivered message', () => {
    const { adapter, events, read } = reader();
    const says = (text: string) =>
      read({ type: 'assistant', message: { id: `m-${text}`, content: [{ type: 'text', text }] } });
    read(prompt('Go'));
    says('Before');
    adapter.messagesDelivered(['mara-1']);
    says('After');
    read(over);
    read(prompt('Next'));
    says('Later');
    read(over);
    const replies = events.filter(({ type, role }) => type === 'TEXT_MESSAGE_START' && role === 'assistant');
    expect(replies.map(({ metadata }) => metadata?.interlude?.replyTo)).toEqual([undefined, ['mara-1'], undefined]);
    const ends = events.filter(({ type }) => type === 'RUN_FINISHED');
    expect(ends.map(({ metadata }) => metadata?.interlude?.userMessageIds)).toEqual([['u1', 'mara-1'], ['u5']]);
  });

  test.each([null, 7, 'text', [], {}, { type: 'user' }, { type: 'assistant', message: null }, { type: 'system' }])(
    'is read over what makes no sense: %j',
    (line) => {
      const { adapter } = reader();
      expect(adapter.read(line, 'k', 0)).toEqual([]);
    },
  );
});
