import { OpencodeAdapter } from '@interlude/runner/adapters/opencode/opencode-adapter';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import { describe, expect, test } from 'vitest';
import { eventLines, expectValidEvents } from '../../support/recordings';

type Fields = Record<string, unknown>;

/** One root session, fed with events of `/event`. */
function session() {
  let [ids, runs] = [0, 0];
  const adapter = new OpencodeAdapter({ sessionOf: (id) => id, newRunId: () => `r${++runs}` });
  const told: EmittedEvent[] = [];
  const pass = (dir: 'in' | 'out', msg: unknown) => told.push(...adapter.read({ dir, msg }, ++ids));
  const tell = (type: string, properties: Fields) => pass('in', { id: `evt_${++ids}`, type, properties });
  const message = (info: Fields, sessionID = 'ses_1') => {
    const time = { created: 1, ...(info.finish || info.error ? { completed: 2 } : {}) };
    tell('message.updated', { sessionID, info: { role: 'assistant', parentID: 'msg_1', time, sessionID, ...info } });
  };
  const part = (part: Fields, sessionID = 'ses_1') =>
    tell('message.part.updated', { sessionID, part: { sessionID, ...part } });
  tell('session.created', { info: { id: 'ses_1', directory: '/project', title: 'New session - now' } });
  return {
    tell,
    pass,
    message,
    part,
    asked: (id: string, text: string, more: Fields = {}, sessionID = 'ses_1') => {
      message({ id, role: 'user', parentID: undefined }, sessionID);
      part({ id: `prt_${id}`, messageID: id, type: 'text', text, ...more }, sessionID);
    },
    child: (id: string) =>
      tell('session.created', { info: { id, parentID: 'ses_1', directory: '/project', title: 'Look' } }),
    tool: (of: Fields, state: Fields, sessionID = 'ses_1') =>
      part({ type: 'tool', tool: 'bash', callID: 'c', ...of, state }, sessionID),
    answer: (path: string, body: unknown) => {
      pass('out', { method: 'GET', path });
      pass('in', { status: 200, body });
    },
    delta: (messageID: string, partID: string, delta: string, sessionID = 'ses_1') =>
      tell('message.part.delta', { sessionID, messageID, partID, field: 'text', delta }),
    lines: () => {
      expectValidEvents([...told, ...adapter.ended({ reason: 'the test is over' }, ++ids)]);
      return eventLines(told)
        .split('\n')
        .filter((line) => line !== '' && !line.includes('opencode:'));
    },
  };
}

const starts = (lines: string[], ...beginnings: string[]) =>
  lines.filter((line) => beginnings.some((one) => line.startsWith(one)));

describe('a turn', () => {
  test('is cancelled when idle after a rejection without a message', () => {
    const { asked, message, tool, tell, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2' });
    tool({ id: 'prt_1', messageID: 'msg_2' }, { status: 'running', input: {} });
    tool(
      { id: 'prt_1', messageID: 'msg_2' },
      { status: 'error', input: {}, error: 'The user rejected permission to use this specific tool call.' },
    );
    message({ id: 'msg_2', finish: 'tool-calls' });
    tell('session.status', { sessionID: 'ses_1', status: { type: 'idle' } });
    expect(starts(lines(), 'RUN_FINISHED')).toEqual([expect.stringContaining('"type":"cancelled"')]);
  });

  test('stays open if the session is idle but its message is open', () => {
    const { asked, message, tell, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2' });
    tell('session.error', { sessionID: 'ses_1', error: { name: 'MessageAbortedError', data: {} } });
    tell('session.status', { sessionID: 'ses_1', status: { type: 'idle' } });
    tell('session.idle', { sessionID: 'ses_1' });
    expect(starts(lines(), 'RUN_FINISHED', 'RUN_ERROR')).toEqual([]);
  });

  test('has its text though its first event already ended', () => {
    const { asked, message, part, tell, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2', finish: 'stop' });
    part({ id: 'prt_1', messageID: 'msg_2', type: 'text', text: 'Gone.', time: { start: 1, end: 2 } });
    message({ id: 'msg_2', finish: 'stop' });
    message({ id: 'msg_3', error: { name: 'APIError', data: { message: 'No.' } } });
    tell('session.idle', { sessionID: 'ses_1' });
    tell('session.status', { sessionID: 'ses_1', status: { type: 'idle' } });
    expect(lines().flatMap((line) => /Gone\.|^RUN_\w+/.exec(line)?.[0] ?? [])).toEqual([
      ...['RUN_STARTED', 'Gone.', 'RUN_FINISHED', 'RUN_STARTED', 'RUN_ERROR'],
    ]);
  });

  test('answers all earlier messages of people', () => {
    const { asked, message, lines } = session();
    asked('msg_0', 'One');
    asked('msg_1', 'Two');
    message({ id: 'msg_2' });
    message({ id: 'msg_2', finish: 'stop' });
    expect(starts(lines(), 'RUN_FINISHED')[0]).toContain('"userMessageIds":["msg_0","msg_1"]');
  });

  test('continues despite a provider’s end while a call is open', () => {
    const { asked, message, tool, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2' });
    tool({ id: 'prt_1', messageID: 'msg_2' }, { status: 'completed', input: {}, output: 'x' });
    message({ id: 'msg_2', finish: 'stop' });
    message({ id: 'msg_3' });
    message({ id: 'msg_3', finish: 'stop' });
    expect(starts(lines(), 'RUN_')).toHaveLength(2);
  });

  test('continues through a compaction', () => {
    const { asked, message, part, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2', finish: 'tool-calls' });
    message({ id: 'msg_3', role: 'user', parentID: undefined });
    part({ id: 'prt_3', messageID: 'msg_3', type: 'compaction', auto: true });
    message({ id: 'msg_4', parentID: 'msg_3', summary: true });
    message({ id: 'msg_4', parentID: 'msg_3', summary: true, finish: 'stop' });
    asked('msg_5', 'Continue if you have next steps', { synthetic: true });
    message({ id: 'msg_6', parentID: 'msg_5' });
    message({ id: 'msg_6', parentID: 'msg_5', finish: 'stop' });
    const all = lines();
    expect(starts(all, 'RUN_')).toHaveLength(2);
    expect(all.filter((line) => line.includes('"role":"user"'))).toHaveLength(1);
  });

  test('fails on an error before it begins', () => {
    const { asked, tell, lines } = session();
    asked('msg_1', 'Go');
    tell('session.error', {
      sessionID: 'ses_1',
      error: { name: 'UnknownError', data: { message: 'Agent not found' } },
    });
    expect(starts(lines(), 'RUN_ERROR')).toEqual([expect.stringContaining('Agent not found')]);
  });

  test('is closed with its process, and its message stays its own', () => {
    const { asked, message, answer, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2' });
    answer('/session/status?directory=%2Felsewhere', {});
    answer('/session/status?directory=%2Fproject', { ses_1: { type: 'busy' } });
    answer('/session/status?directory=%2Fproject', {});
    asked('msg_3', 'Again');
    message({ id: 'msg_4', parentID: 'msg_3' });
    message({ id: 'msg_2', error: { name: 'MessageAbortedError', data: {} } });
    message({ id: 'msg_4', parentID: 'msg_3', finish: 'stop' });
    expect(starts(lines(), 'RUN_')).toEqual([
      expect.stringContaining('turn_msg_1'),
      expect.stringContaining('OpenCode ended during this turn.'),
      expect.stringContaining('turn_msg_3'),
      expect.stringContaining('"type":"success"'),
    ]);
  });
});

describe('a subagent', () => {
  test('that continues past the turn is written in full, once', () => {
    const { asked, message, child, part, delta, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2' });
    child('ses_2');
    message({ id: 'msg_8', parentID: 'msg_7' }, 'ses_2');
    part({ id: 'prt_8', messageID: 'msg_8', type: 'text', text: '' }, 'ses_2');
    delta('msg_8', 'prt_8', 'Half a ', 'ses_2');
    message({ id: 'msg_2', finish: 'stop' });
    delta('msg_8', 'prt_8', 'sentence', 'ses_2');
    part({ id: 'prt_8', messageID: 'msg_8', type: 'text', text: 'Half a sentence.', time: { end: 1 } }, 'ses_2');
    expect(starts(lines(), 'TEXT_MESSAGE_CONTENT prt_8')).toEqual([
      'TEXT_MESSAGE_CONTENT prt_8 <ses_2> "Half a "',
      'TEXT_MESSAGE_CONTENT prt_8 <ses_2> {"whole":true} "Half a sentence."',
    ]);
  });

  test('that is aborted while asking is stopped and its request cancelled', () => {
    const { child, message, tool, tell, lines } = session();
    child('ses_2');
    message({ id: 'msg_8', parentID: 'msg_7' }, 'ses_2');
    tool({ id: 'prt_8', messageID: 'msg_8' }, { status: 'running', input: {} }, 'ses_2');
    const asked = { id: 'per_1', sessionID: 'ses_2', permission: 'bash', tool: { messageID: 'msg_8', callID: 'c' } };
    tell('permission.asked', asked);
    tool({ id: 'prt_8', messageID: 'msg_8' }, { status: 'error', input: {}, error: 'Tool execution aborted' }, 'ses_2');
    message({ id: 'msg_8', parentID: 'msg_7', error: { name: 'MessageAbortedError', data: {} } }, 'ses_2');
    const all = starts(lines(), 'CUSTOM');
    expect(all.map((line) => line.split(' ')[1])).toEqual([
      'task:started',
      'request:opened',
      'request:resolved',
      'task:completed',
    ]);
    expect(all[1]).toContain('"tool_use_id":"prt_8"');
    expect(all[3]).toContain('"status":"stopped"');
  });

  test('that restarts is another run of its task', () => {
    const { asked, message, child, tool, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2' });
    child('ses_2');
    for (const id of ['prt_1', 'prt_2']) {
      const call = { id, messageID: 'msg_2', tool: 'task', callID: id };
      const input = { description: 'Look', subagent_type: 'general' };
      tool(call, { status: 'running', input, metadata: { sessionId: 'ses_2' } });
      const output = '<task id="ses_2" state="completed">\n<task_result>\nSeen.\n</task_result>\n</task>';
      tool(call, { status: 'completed', input, metadata: { sessionId: 'ses_2' }, output });
    }
    const all = starts(lines(), 'CUSTOM task:');
    expect(all).toHaveLength(4);
    expect(all[2]).toContain('"run_id":"prt_2"');
    expect(all[3]).toContain('"status":"completed","summary":"Seen.","run_id":"prt_2"');
  });

  test('of a subagent names the subagent', () => {
    const { child, tell, message, lines } = session();
    child('ses_2');
    tell('session.created', {
      info: { id: 'ses_3', parentID: 'ses_2', title: 'Deeper (@explore subagent)', agent: 'explore' },
    });
    message({ id: 'msg_9', parentID: 'msg_8' }, 'ses_3');
    expect(starts(lines(), 'CUSTOM task:started')).toEqual([
      'CUSTOM task:started {"status":"running","task_id":"ses_3","description":"Deeper","task_type":"local_agent","subagent_type":"explore","parent_task_id":"ses_2"}',
    ]);
  });
});

describe('the edits of a call', () => {
  test.each([
    [
      'edit',
      { filePath: 'a', oldString: 'x', newString: 'y' },
      { filediff: { file: '/project/a' } },
      ['/project/a', 'x', 'y'],
    ],
    ['write', { filePath: 'a', content: 'x' }, { filepath: '/project/a', exists: false }, ['/project/a', '', 'x']],
    ['write', { filePath: 'a', content: 'x' }, { filepath: '/project/a', exists: true }, null],
    [
      'apply_patch',
      {},
      { files: [{ filePath: 'a', patch: '--- a\n+++ a\n@@ -1,2 +1,2 @@\n k\n-x\n+y\n' }] },
      ['a', 'k\nx', 'k\ny'],
    ],
    ['bash', { command: 'x' }, {}, null],
  ])('come from %s', (tool, input, metadata, edit) => {
    const { asked, message, part, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2' });
    part({
      id: 'prt_1',
      messageID: 'msg_2',
      type: 'tool',
      tool,
      state: { status: 'completed', input, metadata, output: 'Done' },
    });
    const [path, before, after] = edit ?? [];
    const expected = edit === null ? '' : `"edits":${JSON.stringify([{ path, before, after }])}`;
    const [result] = starts(lines(), 'TOOL_CALL_RESULT');
    expect(result).toContain(expected);
    if (edit === null) expect(result).not.toContain('edits');
  });

  test('of todowrite are its plan', () => {
    const { asked, message, part, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2' });
    const todos = [
      { content: 'A', status: 'in_progress', priority: 'high' },
      { content: 'B', status: 'cancelled' },
    ];
    part({
      id: 'prt_1',
      messageID: 'msg_2',
      type: 'tool',
      tool: 'todowrite',
      state: { status: 'running', input: { todos } },
    });
    expect(starts(lines(), 'ACTIVITY')[0]).toContain(
      '{"entries":[{"content":"A","status":"in_progress","priority":"high"}]}',
    );
  });
});

describe('a hostile frame', () => {
  const VALUES: unknown[] = [null, 7, '', 'x', [], {}, [[]], { id: 7 }, 'x'.repeat(10_000_000)];
  const TYPES = [
    ...[
      'session.created',
      'session.updated',
      'session.deleted',
      'session.status',
      'session.error',
      'session.compacted',
    ],
    ...['message.updated', 'message.part.updated', 'message.part.delta', 'permission.asked', 'permission.replied'],
    ...['question.asked', 'question.replied', 'question.rejected', 'sync', 'session.next.prompted', 'anything'],
  ];

  test.each(TYPES)('of type %s never throws, and every record fits', (type) => {
    const { asked, message, pass, tell, lines } = session();
    asked('msg_1', 'Go');
    message({ id: 'msg_2' });
    for (const value of VALUES) {
      pass('in', { type, properties: value });
      pass('in', { payload: { type, properties: { sessionID: 'ses_1', info: value } }, status: value });
      for (const field of [
        'info',
        'part',
        'status',
        'error',
        'id',
        'delta',
        'partID',
        'requestID',
        'questions',
        'metadata',
      ]) {
        tell(type, { sessionID: 'ses_1', messageID: 'msg_2', [field]: value });
      }
      for (const field of ['text', 'state', 'tool', 'type', 'time', 'callID']) {
        tell(type, { sessionID: 'ses_1', part: { id: 'prt_1', messageID: 'msg_2', type: 'tool', [field]: value } });
        tell(type, { sessionID: 'ses_1', part: { id: 'prt_2', messageID: 'msg_2', type: 'text', [field]: value } });
      }
    }
    lines();
  });

  test('that is a response never throws', () => {
    const { pass, answer, lines } = session();
    for (const value of [
      null,
      7,
      'x',
      [],
      [null, 7, {}, { info: 1, parts: 1 }],
      { ses_1: 7 },
      { id: 'ses_9', parentID: 'ses_9' },
    ]) {
      for (const path of [
        '/session/status?directory=%2Fproject',
        '/permission?directory=%2Fproject',
        '/sync/history',
        '/session',
        '/x',
      ]) {
        answer(path, value);
      }
      answer('/session/ses_1/message', value);
      answer('/permission/per_1/reply', value);
      pass('out', value);
      pass('in', value);
    }
    lines();
  });
});

test('offers only deny for an input that can’t be shown', () => {
  const { tell, lines } = session();
  const ask = (id: string, metadata: Fields) =>
    tell('permission.asked', { id, sessionID: 'ses_1', permission: 'edit', patterns: ['a'], metadata });
  ask('per_1', { diff: 'x'.repeat(100_000) });
  ask('per_2', { diff: 'x'.repeat(1_000_000) });
  ask('per_3', { deep: JSON.parse(`${'['.repeat(50)}${']'.repeat(50)}`) });
  const opened = starts(lines(), 'CUSTOM request:opened').map((line) => line.match(/"kind":"(allow|deny)"/g)?.length);
  expect(opened).toEqual([3, 1, 1]);
});

test('ignores Object.prototype names', () => {
  const { asked, message, part, lines } = session();
  asked('msg_1', 'Go');
  message({ id: 'msg_2' });
  part({ id: 'prt_1', messageID: 'msg_2', type: 'constructor', text: 'Hello' });
  expect(starts(lines(), 'REASONING', 'TEXT_MESSAGE_CONTENT prt_1')).toEqual([]);
});
