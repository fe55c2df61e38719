import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import { SessionWriter, type SessionWriterOptions } from '@interlude/runner/adapters/writer/session-writer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { expectValidEvents } from '../../support/recordings';

function newWriter(options: Partial<SessionWriterOptions> = {}) {
  let runs = 0;
  const writer = new SessionWriter({ sessionId: 's1', newRunId: () => `r${++runs}`, ...options });
  writer.at(1);
  return writer;
}

test('writes a dashboard message only in a replay', () => {
  const options = { sessionId: 's1', newRunId: () => 'r1' };
  const [live, replay] = [new SessionWriter(options), new SessionWriter({ ...options, isReplay: true })];
  for (const writer of [live, replay]) {
    writer.at(1);
    writer.dashboardMessage('m1', 'Build it');
    writer.dashboardMessage('m1', 'Build it');
    // The agent's own history returns it.
    writer.userMessage('m1', 'Build it');
  }
  expect(live.drain()).toEqual([]);
  const told = replay.drain();
  expect(types(told)).toEqual(['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END']);
  expect(texts(told, 'm1')).toBe('Build it');
});

const user = (...userMessageIds: string[]) => ({ kind: 'user', userMessageIds }) as const;
const types = (told: readonly EmittedEvent[]) => told.map(({ event: { type, name } }) => String(name ?? type));
const texts = (told: readonly EmittedEvent[], id: string) =>
  told.reduce((text, { event: { messageId, delta, metadata } }) => {
    if (messageId !== id || typeof delta !== 'string') return text;
    return metadata?.interlude?.whole ? delta : text + delta;
  }, '');

describe('a turn', () => {
  test('names all messages it answers', () => {
    const writer = newWriter();
    writer.begin(user('m1'));
    writer.addAnswered(['m2']);
    writer.finish({ kind: 'success' });
    const [started, finished] = writer.drain();
    expect(started?.event.metadata?.interlude).toEqual({ turn: 'user', userMessageIds: ['m1'] });
    expect(finished?.event.metadata?.interlude).toEqual({ userMessageIds: ['m1', 'm2'] });
  });

  test('triggered by a task has the task’s starting run as parent', () => {
    const writer = newWriter();
    writer.begin(user('m1'));
    writer.taskStarted({ task_id: 't1', description: 'poll' });
    writer.finish({ kind: 'success' });
    writer.begin({ kind: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] } });
    expect(writer.drain().at(-1)?.event).toMatchObject({ parentRunId: 'r1' });
  });

  test('ends an open turn as inferred', () => {
    const writer = newWriter();
    writer.begin(user('m1'));
    writer.begin(user('m2'));
    const finished = writer.drain().find(({ event }) => event.type === 'RUN_FINISHED');
    expect(finished?.event).toMatchObject({ runId: 'r1', metadata: { interlude: { inferred: true } } });
  });

  test('closes its open texts, calls and requests before its end', () => {
    const writer = newWriter();
    writer.begin(user('m1'));
    writer.parts().startCall('c1', 'shell');
    writer.requested({ request_id: 'q1', kind: 'permission' });
    writer.parts().appendText('text', 'a', 'Hm');
    writer.finish({ kind: 'cancelled' });
    const order = types(writer.drain()).slice(-4);
    expect(order).toEqual(['TEXT_MESSAGE_END', 'TOOL_CALL_END', 'request:resolved', 'RUN_FINISHED']);
  });

  test('that is announced starts at its first content', () => {
    const writer = newWriter();
    writer.applyTurnInput('announce', () => user('m1'));
    expect([writer.drain(), writer.turn]).toEqual([[], null]);
    writer.applyTurnInput('request', () => user('m1'));
    writer.finish({ kind: 'success' });
    writer.applyTurnInput('announce', () => user('m2'));
    writer.end({ reason: 'exited' });
    writer.applyTurnInput('request', () => user('m3'));
    expect(types(writer.drain())).toEqual(['RUN_STARTED', 'RUN_FINISHED', 'session:ended']);
  });

  test('that a message joins is rewritten as a user turn', () => {
    const writer = newWriter();
    writer.begin({ kind: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] } });
    writer.joinTurn(['m1']);
    writer.finish({ kind: 'success' });
    const told = writer.drain().map(({ event: { type, runId, metadata } }) => [type, runId, metadata?.interlude]);
    expect(told.slice(1)).toEqual([
      ['RUN_STARTED', 'r1', { turn: 'user', userMessageIds: ['m1'] }],
      ['RUN_FINISHED', 'r1', { userMessageIds: ['m1'] }],
    ]);
  });

  test('ends with the adapter’s final details', () => {
    const unfinished = { kind: 'failed', message: 'No result', code: 'result_missing' } as const;
    const writer = newWriter({ unfinished, beforeTurnEnds: () => ({ foldedTaskIds: ['t1'] }) });
    writer.begin(user('m1'));
    writer.begin(user('m2'));
    writer.end({ reason: 'exited' });
    const ends = writer.drain().filter(({ event }) => event.type === 'RUN_ERROR');
    expect(ends.map(({ event: { code, metadata } }) => [code, metadata?.interlude])).toEqual([
      ['result_missing', { userMessageIds: ['m1'], foldedTaskIds: ['t1'] }],
      ['agent_exited', { userMessageIds: ['m2'], foldedTaskIds: ['t1'] }],
    ]);
  });

  test('leaves requests of subagents and between turns open', () => {
    const writer = newWriter();
    writer.requested({ request_id: 'between', kind: 'permission' });
    writer.begin(user('m1'));
    writer.requested({ request_id: 'child', kind: 'permission' }, true);
    writer.finish({ kind: 'success' });
    expect(writer.requests.isOpen('between')).toBe(true);
    expect(writer.requests.isOpen('child')).toBe(true);
  });
});

describe('a part assembler', () => {
  test('continues a text without an id until another part begins', () => {
    const writer = newWriter();
    writer.begin(user());
    const agent = writer.parts();
    agent.appendText('text', null, 'One ');
    agent.appendText('text', null, 'two.');
    agent.appendText('thought', null, 'Hm.');
    agent.appendText('text', null, 'Three.');
    agent.startCall('c1', 'shell');
    agent.appendText('text', null, 'Four.');
    const told = writer.drain();
    const starts = told.filter(({ event }) => event.type === 'TEXT_MESSAGE_START').map(({ event }) => event.messageId);
    expect(starts.map((id) => texts(told, String(id)))).toEqual(['One two.', 'Three.', 'Four.']);
  });

  test('writes the rest of an interrupted message under a new id', () => {
    const writer = newWriter();
    writer.begin(user());
    writer.parts().appendText('text', 'a', 'One');
    writer.parts().startCall('c1', 'shell');
    writer.parts().appendText('text', 'a', 'two');
    writer.finish({ kind: 'success' });
    expectValidEvents(writer.drain());
  });

  test('appends the new part of a full text or replaces it', () => {
    const writer = newWriter();
    writer.begin(user());
    const agent = writer.parts();
    agent.appendText('text', 'a', 'One tw');
    agent.setText('text', 'a', 'One two');
    expect(writer.drain().at(-1)?.event).toEqual({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'a', delta: 'o' });
    agent.setText('text', 'a', 'Two one');
    expect(writer.drain().at(-1)?.event).toMatchObject({ delta: 'Two one', metadata: { interlude: { whole: true } } });
    agent.setText('text', 'a', 'Two one!');
    expect(writer.drain().at(-1)?.event).toEqual({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'a', delta: '!' });
  });

  test('corrects an ended text once, only if it differs', () => {
    const writer = newWriter();
    writer.begin(user());
    const agent = writer.parts();
    agent.appendText('text', 'a', 'One');
    agent.endText();
    writer.drain();
    agent.setText('text', 'a', 'One');
    expect(writer.drain()).toEqual([]);
    agent.setText('text', 'a', 'Two');
    agent.setText('text', 'a', 'Two');
    expect(types(writer.drain())).toEqual(['TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END']);
  });

  test('writes the rest of a long text that ended early', () => {
    const writer = newWriter();
    writer.begin(user());
    const agent = writer.parts();
    const long = 'x'.repeat(100_000);
    agent.appendText('text', 'a', long);
    agent.endText();
    agent.setText('text', 'a', long);
    for (const whole of [`${long} and`, `${long} and more`]) agent.setText('text', 'a', whole);
    writer.finish({ kind: 'success' });
    agent.setText('text', 'a', `${long} and more`);
    const told = writer.drain();
    const starts = told.filter(({ event }) => event.type === 'TEXT_MESSAGE_START').map(({ event }) => event.messageId);
    expect(starts.map((id) => texts(told, String(id)))).toEqual([long, ' and more']);
    expectValidEvents(told);
  });

  test('appends growing arguments and replaces changed ones', () => {
    const writer = newWriter();
    writer.begin(user());
    const agent = writer.parts();
    agent.startCall('c1', 'shell');
    agent.setArgs('c1', {});
    agent.setArgs('c1', { command: 'ls' });
    agent.setArgs('c1', { command: 'ls' });
    const told = writer.drain().filter(({ event }) => event.type === 'TOOL_CALL_ARGS');
    expect(told.map(({ event }) => event.delta)).toEqual(['{}', '{"command":"ls"}']);
    expect(told[1]?.event.metadata?.interlude?.whole).toBe(true);
  });

  test('splits a 10 MB text into records', () => {
    const writer = newWriter();
    writer.begin(user());
    const long = '\u0001😀'.repeat(3_500_000);
    writer.parts().appendText('text', 'a', long);
    const told = writer.drain();
    expect(texts(told, 'a')).toBe(long);
    expect(told.every(({ event }) => (event.delta as string | undefined)?.isWellFormed() ?? true)).toBe(true);
    writer.parts().startCall('c1', 'shell');
    writer.parts().setResult('c1', long, { edits: [{ path: 'a', before: long, after: long }] });
    writer.finish({ kind: 'success' });
    const rest = writer.drain();
    expectValidEvents([...told, ...rest]);
    expect(rest.find(({ event }) => event.type === 'TOOL_CALL_RESULT')?.event.content).toMatch(/characters cut\]$/);
  });
});

describe('a reused call id', () => {
  const results = (told: readonly EmittedEvent[]) =>
    told.flatMap(({ event: { type, toolCallId, content } }) =>
      type === 'TOOL_CALL_RESULT' ? [[toolCallId, content]] : [],
    );
  const begin = () => {
    const writer = newWriter();
    writer.begin(user('m1'));
    return { writer, agent: writer.parts() };
  };

  test('means the same call until its result or turn end', () => {
    const { writer, agent } = begin();
    expect(agent.startCall('c1', 'shell', { isStart: true })).toBe('c1');
    expect(agent.startCall('c1', 'shell', { isStart: true })).toBe('c1');
    agent.setResult('c1', 'one');
    expect(agent.startCall('c1', 'shell')).toBe('c1');
    const second = agent.startCall('c1', 'shell', { isStart: true });
    expect(second).not.toBe('c1');
    writer.finish({ kind: 'success' });
    expect(agent.startCall('c1', 'shell')).toBe(second);
    expect(agent.startCall('c1', 'shell', { isStart: true })).not.toBe(second);
    writer.end({ reason: 'exited' });
    expectValidEvents(writer.drain());
  });

  test('means another call if the arguments differ', () => {
    const { agent } = begin();
    const args = '{"n":1}';
    agent.startCall('c1', 'shell', { args });
    agent.setArgs('c1', args);
    agent.endCall('c1', args);
    expect(agent.startCall('c1', 'shell', { args })).toBe('c1');
    expect(agent.startCall('c1', 'shell', { args: '{"n":2}' })).not.toBe('c1');
  });

  test('assigns each result to the oldest open call, this turn’s first', () => {
    const { writer, agent } = begin();
    agent.startCall('c1', 'shell');
    writer.finish({ kind: 'success' });
    writer.begin(user('m2'));
    const ids = ['{"n":1}', '{"n":2}'].map((args) => {
      const id = agent.startCall('c1', 'shell', { isStart: true, args });
      agent.endCall(id, args);
      return id;
    });
    for (const content of ['a', 'b', 'late', 'again']) agent.setResult('c1', content);
    expect(results(writer.drain())).toEqual([
      [ids[0], 'a'],
      [ids[1], 'b'],
      ['c1', 'late'],
    ]);
  });

  test('writes the result of an earlier call once', () => {
    const { writer, agent } = begin();
    agent.setResult('c0', 'one');
    agent.setResult('c0', 'two');
    expect(results(writer.drain())).toEqual([['c0', 'one']]);
  });

  test('keeps name and arguments if the result came first', () => {
    const { writer, agent } = begin();
    agent.setResult('c0', 'one');
    expect(agent.loggedCallId('c0')).toBeNull();
    expect(agent.startCall('c0', 'shell', { isStart: true })).toBe('c0');
    agent.setArgs('c0', '{"n":1}');
    agent.setResult('c0', 'one');
    const [, , started, args] = writer.drain().map(({ event }) => event);
    expect(started).toMatchObject({ type: 'TOOL_CALL_START', toolCallId: 'c0', toolCallName: 'shell' });
    expect(args).toMatchObject({ type: 'TOOL_CALL_ARGS', delta: '{"n":1}' });
  });
});

describe('a task', () => {
  test('ends once', () => {
    const writer = newWriter();
    writer.taskStarted({ task_id: 't1' });
    writer.taskCompleted({ task_id: 't1', status: 'failed', exit_code: 3 });
    writer.taskCompleted({ task_id: 't1', status: 'completed' });
    expect(types(writer.drain())).toEqual(['task:started', 'task:completed']);
  });

  test.each([true, false])('presumed lost ends when its end is reported (started: %s)', (isStarted) => {
    const writer = newWriter();
    if (isStarted) writer.taskStarted({ task_id: 't1' });
    writer.taskCompleted({ task_id: 't1', status: 'lost' });
    if (isStarted) writer.taskStarted({ task_id: 't1' });
    writer.taskCompleted({ task_id: 't1', status: 'lost' });
    writer.taskCompleted({ task_id: 't1', status: 'completed' });
    writer.taskCompleted({ task_id: 't1', status: 'lost' });
    const statuses = writer.drain().map(({ event }) => (event.value as { status?: string }).status);
    expect(statuses).toEqual([...(isStarted ? ['running'] : []), 'lost', 'completed']);
  });

  test('keeps only ids and lengths of its subagent’s texts after its end', () => {
    const writer = newWriter();
    writer.taskStarted({ task_id: 't1' });
    const subagent = writer.parts('t1');
    subagent.setText('text', 'm1', 'Done', { staysOpen: true });
    subagent.startCall('c1', 'shell');
    subagent.endCall('c1', '{"n":1}');
    subagent.setResult('c1', 'ok');
    writer.taskCompleted({ task_id: 't1', status: 'completed' });
    expect([subagent.textOf('text', 'm1'), subagent.argsOf('c1')]).toEqual([null, '']);
    writer.drain();
    subagent.setText('text', 'm1', 'Done', { staysOpen: true });
    subagent.setResult('c1', 'ok');
    expect(writer.drain()).toEqual([]);
  });

  test('ends without a known start', () => {
    const writer = newWriter();
    writer.taskCompleted({ task_id: 't1', status: 'completed' });
    expect(types(writer.drain())).toEqual(['task:completed']);
  });

  test('that is hidden shows once it moves to the background', () => {
    const writer = newWriter();
    writer.taskStarted({ task_id: 't1' }, 'hide');
    writer.taskProgress({ task_id: 't1', summary: 'half' });
    writer.taskCompleted({ task_id: 't1', status: 'completed' });
    expect(writer.drain()).toEqual([]);
    writer.taskStarted({ task_id: 't1' });
    writer.taskCompleted({ task_id: 't1', status: 'completed' });
    expect(types(writer.drain())).toEqual(['task:started', 'task:completed']);
  });

  test('makes no progress after its end unless it predates the process', () => {
    const writer = newWriter();
    const progresses = (task_id: string) => writer.taskProgress({ task_id, summary: 'half' });
    writer.taskStarted({ task_id: 't1' });
    const meanwhile = progresses('t1');
    writer.taskCompleted({ task_id: 't1', status: 'completed' });
    expect([meanwhile, progresses('t1'), progresses('t2')]).toEqual([true, false, true]);
  });

  test('keeps a later run id', () => {
    const writer = newWriter();
    writer.taskStarted({ task_id: 't1' });
    writer.taskStarted({ task_id: 't1', run_id: 'run' });
    writer.taskCompleted({ task_id: 't1', status: 'completed' });
    const told = writer.drain();
    expect(types(told)).toEqual(['task:started', 'task:completed']);
    expect(told.at(-1)?.event.value).toMatchObject({ run_id: 'run' });
  });

  test.each([
    { reusesTaskIds: false, ends: ['one lost', 'two completed', 'one completed'] },
    { reusesTaskIds: true, ends: ['two completed', 'one completed'] },
  ])('has one run at a time unless ids are reused ($reusesTaskIds)', ({ reusesTaskIds, ends }) => {
    const writer = newWriter({ reusesTaskIds });
    for (const run_id of ['one', 'two']) writer.taskStarted({ task_id: 't1', run_id });
    for (const run_id of ['two', 'one']) writer.taskCompleted({ task_id: 't1', run_id, status: 'completed' });
    const completed = writer.drain().filter(({ event }) => event.name === 'task:completed');
    const values = completed.map(({ event }) => event.value as { run_id: string; status: string });
    expect(values.map(({ run_id, status }) => `${run_id} ${status}`)).toEqual(ends);
  });

  test('without a run id restarts after its end if ids are reused', () => {
    const writer = newWriter({ reusesTaskIds: true });
    for (let count = 0; count < 2; count += 1) {
      writer.taskStarted({ task_id: 't1' });
      writer.taskCompleted({ task_id: 't1', status: 'completed' });
    }
    expect(types(writer.drain()).filter((type) => type === 'task:started')).toHaveLength(2);
  });

  test('is lost with its process unless tasks outlive it', () => {
    const writer = newWriter();
    writer.taskStarted({ task_id: 't1' });
    writer.end({ reason: 'exited' }, true);
    expect(writer.openTasks).toEqual(['t1']);
    const other = newWriter();
    other.taskStarted({ task_id: 't1' });
    other.end({ reason: 'exited' });
    expect(types(other.drain())).toEqual(['task:started', 'task:completed', 'session:ended']);
  });
});

test('resolves a passed request once with its late answer', () => {
  const writer = newWriter();
  writer.requested({ request_id: 'q1', kind: 'permission' });
  writer.requestPassed('q1');
  writer.requestPassed('q1');
  writer.resolved('q1', 'denied');
  writer.resolved('q1', 'allowed');
  const told = writer.drain().slice(1);
  expect(told.map(({ event }) => (event.value as { outcome: string }).outcome)).toEqual(['unknown', 'denied']);
});

test('ends the oldest tasks and requests beyond the limit', () => {
  const writer = newWriter();
  for (let index = 0; index < 1_500; index += 1) {
    writer.taskStarted({ task_id: `t${index}` });
    writer.requested({ request_id: `q${index}`, kind: 'permission' }, true);
  }
  writer.end({ reason: 'it is over' });
  const told = writer.drain();
  expect(told.filter(({ event }) => event.name === 'request:resolved')).toHaveLength(1_500);
  expect(told.filter(({ event }) => event.name === 'task:completed')).toHaveLength(1_500);
  expectValidEvents(told);
});

test('bounds ids and records', () => {
  const writer = newWriter();
  const long = 'x'.repeat(10_000);
  const huge = 'ä"\u0000'.repeat(1_000_000);
  writer.begin(user('m1'));
  for (const id of [`${long}1`, `${long}2`]) {
    writer.parts().startCall(id, huge);
    writer.parts().setResult(id, 'done');
    writer.taskStarted({ task_id: id, description: huge, tool_use_id: id });
    writer.taskCompleted({ task_id: id, status: 'completed', summary: huge });
  }
  writer.parts().appendText('text', `${long}3`, 'Hello');
  writer.custom('kind:odd', { list: Array.from({ length: 100_000 }, () => ({ a: [huge.slice(0, 9)] })) });
  writer.raw(JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`), 'kind');
  writer.requested({ request_id: 'q', kind: 'question', title: huge, input: { [huge]: huge } });
  writer.finish({ kind: 'failed', message: huge, code: huge });
  writer.end({ reason: huge });
  const told = writer.drain();
  expectValidEvents(told);
  const ids = told.flatMap(({ event }) => [event.messageId, event.toolCallId].filter((id) => typeof id === 'string'));
  expect(Math.max(...ids.map((id) => id.length))).toBeLessThanOrEqual(256);
  expect(new Set(told.flatMap(({ event: { toolCallId } }) => toolCallId ?? [])).size).toBe(2);
  for (const { event } of told) expect(JSON.stringify(event).match(/[[{]/g)?.length ?? 0).toBeLessThan(20_000);
});

test('writes the end once per process', () => {
  const writer = newWriter();
  writer.begin(user('m1'));
  writer.end({ reason: 'terminated by signal SIGKILL', signal: 'SIGKILL' });
  writer.end({ reason: 'exited' });
  expect(types(writer.drain())).toEqual(['RUN_STARTED', 'RUN_ERROR', 'session:ended']);
});

test('is well formed for any calls in any order', () => {
  const id = fc.constantFrom('a', 'b', 'c');
  const word = fc.constantFrom('', 'x', 'xy', 'yz');
  const voice = fc.constantFrom(null, 'a', 't9');
  type Step = (writer: SessionWriter) => void;
  const step: fc.Arbitrary<Step> = fc.oneof(
    id.map(
      (one): Step =>
        (writer) =>
          writer.begin(user(one)),
    ),
    id.map(
      (one): Step =>
        (writer) => {
          writer.begin({ kind: 'between-run', trigger: { kind: 'task', taskIds: [one] } });
        },
    ),
    fc.constantFrom('success', 'cancelled').map(
      (kind): Step =>
        (writer) =>
          writer.finish({ kind }),
    ),
    fc.tuple(voice, fc.constantFrom('text', 'thought'), fc.option(id), word).map(
      ([who, kind, name, text]): Step =>
        (writer) =>
          writer.parts(who).appendText(kind, name && `${who}${name}`, text),
    ),
    fc.tuple(voice, fc.constantFrom('text', 'thought'), id, word).map(
      ([who, kind, name, text]): Step =>
        (writer) =>
          writer.parts(who).setText(kind, `${who}${name}`, text),
    ),
    fc.tuple(voice, id, fc.boolean()).map(
      ([who, call, isStart]): Step =>
        (writer) => {
          writer.parts(who).startCall(`${who}${call}`, 'shell', { isStart });
        },
    ),
    fc.tuple(voice, id, word).map(
      ([who, call, text]): Step =>
        (writer) => {
          writer.parts(who).setArgs(`${who}${call}`, text);
        },
    ),
    fc.tuple(voice, id, word).map(
      ([who, call, text]): Step =>
        (writer) => {
          writer.parts(who).setResult(`${who}${call}`, text);
        },
    ),
    fc.tuple(id, fc.constantFrom('announce', 'request', 'content', 'foreign-end', 'end')).map(
      ([one, input]): Step =>
        (writer) => {
          writer.applyTurnInput(input, () => user(one));
        },
    ),
    id.map(
      (one): Step =>
        (writer) => {
          writer.taskStarted({ task_id: `hidden-${one}` }, 'hide');
          writer.taskCompleted({ task_id: `hidden-${one}`, status: 'completed' });
        },
    ),
    id.map(
      (one): Step =>
        (writer) =>
          writer.userMessage(`u${one}`, 'hello'),
    ),
    fc.tuple(id, id).map(
      ([one, run]): Step =>
        (writer) => {
          writer.taskStarted({ task_id: one, run_id: run });
        },
    ),
    id.map(
      (one): Step =>
        (writer) =>
          writer.taskCompleted({ task_id: one, status: 'completed' }),
    ),
    id.map(
      (one): Step =>
        (writer) =>
          writer.taskStarted({ task_id: `nameless-${one}` }),
    ),
    id.map(
      (one): Step =>
        (writer) =>
          writer.taskCompleted({ task_id: `nameless-${one}`, status: 'failed' }),
    ),
    id.map(
      (one): Step =>
        (writer) => {
          if (!writer.requests.isOpen(one)) writer.requested({ request_id: one, kind: 'permission' });
        },
    ),
    id.map(
      (one): Step =>
        (writer) =>
          writer.resolved(one, 'allowed'),
    ),
    fc.constant<Step>((writer) => writer.end({ reason: 'gone', goesOn: 'It is started again.' })),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const writer = newWriter();
      for (const one of steps) one(writer);
      writer.end({ reason: 'exited' });
      writer.finish({ kind: 'success' });
      expectValidEvents(writer.drain());
    }),
  );
});
