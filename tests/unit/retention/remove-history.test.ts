import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { MAX_OPEN_REQUESTS } from '@interlude/protocol/limits';
import { transcriptFromPage } from '@interlude/protocol/projections/transcript';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OptimisticWrites } from '@/db/optimistic-writes';
import type { WriteTransaction } from '@/db/writes';
import { HistoryKeeper } from '@/lib/server/retention/history-keeper';
import { removeOldTurns } from '@/lib/server/retention/remove-turns';
import { historyRetention } from '@/lib/server/retention/retention-settings';
import { callRoute } from '../../support/call-route';
import { DAY_MS, RetainedServer } from '../../support/retained-server';
import { message, taskEnded, taskStarted, userTurn, wokenTurn } from '../../support/turn-events';

const EVERYTHING = { position: Number.MAX_SAFE_INTEGER, before: Number.MAX_SAFE_INTEGER };

let server: RetainedServer;
beforeEach(async () => {
  server = await RetainedServer.start();
});
afterEach(() => server.close());

const later = (days: number) => {
  server.now += days * DAY_MS;
};
const shownOf = async () => {
  const page = (await server.page()) as TranscriptPage;
  expect(await server.faults()).toEqual([]);
  return { ids: page.turns.filter(({ kind }) => kind !== 'none').map(({ id }) => id), page };
};
const events = () =>
  server.rows(`SELECT position, turn_id, name FROM events WHERE session_id = 's1' ORDER BY position`);

describe('expired history', () => {
  test('is removed turn by turn, and the transcript shows how much and when', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    await server.write(userTurn('r2', 'Two?', 'Two.'));
    later(6);
    await server.write(userTurn('r3', 'Three?', 'Three.'));
    const before = (await shownOf()).page;
    later(5);
    await server.retain();
    const { ids, page } = await shownOf();
    expect(ids).toEqual(['r3']);
    expect(page.removed).toEqual({ upTo: expect.any(String), turns: 2, lastId: 'r2/answer', at: server.now });
    expect(page.hasMore).toBe(false);
    expect(before.turns.find(({ id }) => id === 'r3')?.items).toEqual(page.turns.at(-1)?.items);
    expect((await events()).filter(({ turn_id }) => turn_id === 'r1' || turn_id === 'r2')).toEqual([]);
    expect((await events()).filter(({ name }) => name === CUSTOM.removed)).toHaveLength(1);
  });

  test('is counted together in the newest event', async () => {
    for (const [index, id] of ['r1', 'r2', 'r3'].entries()) {
      await server.write(userTurn(id, 'Go?', `Gone ${index}.`));
      later(1);
    }
    later(8);
    for (let day = 0; day < 3; day += 1) {
      await server.retain();
      later(1);
    }
    const { ids, page } = await shownOf();
    expect(ids).toEqual([]);
    expect(page.removed).toMatchObject({ turns: 3 });
    expect((await events()).map(({ name }) => name)).toEqual([CUSTOM.removed]);
    // and that event is not removed and reported again forever
    later(100);
    const told = await events();
    await server.retain();
    expect(await events()).toEqual(told);
  });

  test('leaves the order of its session unchanged', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    const [before] = await server.rows('SELECT last_event_at, state FROM sessions');
    later(11);
    await server.retain();
    const [after] = await server.rows('SELECT last_event_at, state FROM sessions');
    expect(after).toEqual(before);
  });

  test('stays as long as its session’s state demands', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'), 's1');
    await server.write([...userTurn('r2', 'Two?', 'Two.'), { type: 'CUSTOM', name: 'session:ended', value: {} }], 's2');
    later(4);
    await server.retain({ INTERLUDE_RETENTION_DAYS: 'forever', INTERLUDE_RETENTION_DAYS_BY_STATE: 'exited=3' });
    expect((await server.page(50, 's1'))?.turns.length).toBeGreaterThan(0);
    expect((await server.page(50, 's2'))?.turns).toEqual([]);
  });
});

describe('open work', () => {
  test('keeps a turn and all that started after it', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    await server.write([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r2' }, ...message('m2', 'Working on it')]);
    later(30);
    await server.retain();
    expect((await shownOf()).ids).toEqual(['r2']);
    await server.write([{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r2' }]);
    await server.retain();
    expect((await shownOf()).ids).toEqual(['r2']);
  });

  test('keeps a pending reply', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    await server.write(message('m2', 'And this?', 'user'));
    await server.write(wokenTurn('r3', 'nothing', 'Something else.'));
    later(30);
    await server.retain();
    expect((await shownOf()).ids).toEqual(['r3']);
    expect(await server.rows(`SELECT message_id FROM obligations`)).toEqual([{ message_id: 'm2' }]);
  });

  test('keeps a request', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    const asks: AgUiEvent = {
      type: 'CUSTOM',
      name: CUSTOM.requestOpened,
      value: { request_id: 'q1', title: 'May I?' },
    };
    await server.write(userTurn('r2', 'Two?', [asks]));
    await server.write(wokenTurn('r3', 'nothing', 'Something else.'));
    later(30);
    await server.retain();
    expect((await shownOf()).ids).toEqual(['r2', 'r3']);
  });

  test('keeps a request when there are more than the session remembers', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    const asks = Array.from({ length: MAX_OPEN_REQUESTS + 1 }, (_, index) => `q${index}`);
    const about =
      (name: string) =>
      (id: string): AgUiEvent => ({ type: 'CUSTOM', name, value: { request_id: id } });
    await server.write(userTurn('r2', 'Two?', asks.map(about(CUSTOM.requestOpened))));
    await server.write(asks.slice(0, -1).map(about(CUSTOM.requestResolved)));
    later(30);
    await server.retain();
    expect((await shownOf()).ids).toEqual(['r1', 'r2']);
  });

  test('keeps an open command', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    await server.write([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r2' }]);
    const asked = await callRoute(server.target.context, 'POST', '/sessions/s1/interrupt', { body: {} });
    expect(asked.status).toBe(202);
    await server.write([{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r2' }]);
    await server.write(userTurn('r3', 'Three?', 'Three.'));
    later(30);
    await server.retain();
    expect((await shownOf()).ids).toEqual(['r2', 'r3']);
  });

  test('keeps a message before the cut whose turn started after it', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    await server.write(message('r2/question', 'Two?', 'user'));
    later(6);
    await server.write(userTurn('r2', 'Two?', 'Two.').slice(3));
    const before = (await shownOf()).page;
    later(5);
    await server.retain();
    const { ids, page } = await shownOf();
    expect(ids).toEqual(['r2']);
    expect(page.turns).toEqual(before.turns.slice(-1));
    expect(page.turns[0]?.items.map(({ id }) => id)).toEqual(['r2/question', 'r2/answer']);
  });

  test('keeps a running task with its output when its turn is removed', async () => {
    const said = message('sub1', 'Half done').map((event) => ({ ...event, subagentRunId: 'job' }));
    const wrote: AgUiEvent = { type: 'CUSTOM', name: CUSTOM.taskOutput, value: { task_id: 'job', text: 'one\n' } };
    const call = { type: 'TOOL_CALL_START', toolCallId: 't1', toolCallName: 'Slow', subagentRunId: 'job' };
    await server.write(userTurn('r1', 'Go', [taskStarted('job', 'A long job'), ...said, wrote, call]));
    await server.write(userTurn('r2', 'And?', [taskStarted('short', 'A short job'), taskEnded('short', 'completed')]));
    later(30);
    await server.retain();
    expect((await shownOf()).ids).toEqual([]);
    const tasks = (await server.tasks())?.tasks;
    expect(tasks).toMatchObject([{ id: 'job', status: 'running', startedInTurnId: null }]);
    // and it has a place where people see it while it runs
    const standing = async () => (await shownOf()).page.turns.flatMap(({ items }) => items);
    expect(await standing()).toMatchObject([{ kind: 'task', id: 'job', phase: 'started' }]);
    later(30);
    await server.retain();
    expect(await standing()).toMatchObject([{ kind: 'task', id: 'job', phase: 'started' }]);
    await server.retain();
    expect(await standing()).toHaveLength(1);
    expect((await events()).filter(({ turn_id }) => turn_id === 'task:job')).not.toEqual([]);
    expect((await events()).filter(({ name }) => name === CUSTOM.taskOutput)).toHaveLength(1);
    // its children stay with it
    await server.write([{ type: 'TOOL_CALL_RESULT', messageId: 'x', toolCallId: 't1', content: 'at last' }]);
    expect((await events()).at(-1)?.turn_id).toBe('task:job');
    await server.write([taskEnded('job', 'completed')]);
    await server.write(wokenTurn('r3', 'job', 'It is done.'));
    later(30);
    await server.retain();
    expect((await server.tasks())?.tasks).toEqual([]);
    expect((await events()).map(({ name }) => name)).toEqual([CUSTOM.removed]);
  });
});

describe('work that started before the cut and ended after it', () => {
  test('keeps a task without its turn, and a reply', async () => {
    await server.write(userTurn('r1', 'Go', [taskStarted('job', 'A long job')]));
    await server.write(userTurn('r2', 'And?', [taskStarted('short', 'A short job'), taskEnded('short', 'completed')]));
    await server.write(message('m3', 'And this?', 'user'));
    later(6);
    await server.write([taskEnded('job', 'completed')]);
    await server.write(wokenTurn('r3', 'job', 'It is done.'));
    await server.write(userTurn('r4', 'Four?', 'Four.'));
    const replyTo = { interlude: { replyTo: ['m3'] } };
    const [start, ...rest] = message('a5', 'Yes.');
    const named: AgUiEvent = { type: 'RUN_STARTED', threadId: 's', runId: 'r5' };
    const done: AgUiEvent = { type: 'RUN_FINISHED', threadId: 's', runId: 'r5' };
    await server.write([named, { ...start, metadata: replyTo } as AgUiEvent, ...rest, done]);
    later(5);
    await server.retain();
    expect((await shownOf()).ids).toEqual(['r3', 'r4', 'r5']);
    expect((await server.tasks())?.tasks).toMatchObject([
      { id: 'job', status: 'completed', startedInTurnId: null, answeredInTurnId: 'r3' },
    ]);
    const replies = await server.rows(`SELECT message_id, state FROM obligations`);
    expect(replies).toContainEqual({ message_id: 'm3', state: 'answered' });
    expect(replies).not.toContainEqual({ message_id: 'r1/question', state: 'answered' });
  });
});

describe('a task that was reported again after the cut', () => {
  test('is removed with the turn that reported it, and starts no further turn', async () => {
    await server.write(userTurn('r1', 'Go', [taskStarted('job', 'A job'), taskEnded('job', 'completed')]));
    await server.write(wokenTurn('r2', 'job', 'It is done.'));
    later(6);
    await server.write([taskEnded('job', 'completed', { summary: 'Now with a summary' })]);
    await server.write(userTurn('r3', 'And?', 'So.'));
    later(5);
    expect((await server.tasks())?.tasks).toMatchObject([{ startedInTurnId: 'r1', answeredInTurnId: 'r2' }]);
    await server.retain();
    expect((await shownOf()).ids).toEqual(['r3']);
    expect((await server.tasks())?.tasks).toEqual([]);
  });

  test('stays without its turn when a remaining turn reported it', async () => {
    await server.write(userTurn('r1', 'Go', [taskStarted('job', 'A job')]));
    later(6);
    await server.write([taskEnded('job', 'completed')]);
    await server.write(wokenTurn('r2', 'job', 'It is done.'));
    later(5);
    await server.retain();
    expect((await shownOf()).ids).toEqual(['r2']);
    expect((await server.tasks())?.tasks).toMatchObject([{ id: 'job', startedInTurnId: null, answeredInTurnId: 'r2' }]);
  });
});

describe('a later turn', () => {
  test('has no message and no task as its trigger that was removed', async () => {
    await server.write(message('m1', 'Never mind', 'user'));
    await server.write([{ type: 'CUSTOM', name: CUSTOM.obligationWaived, value: { message_id: 'm1' } }]);
    await server.write([taskStarted('job', 'A job'), taskEnded('job', 'completed')]);
    later(30);
    await server.retain();
    const runs = [{ runId: 'r2' }, { runId: 'r3', parentRunId: 'r2' }];
    await server.write(
      runs.flatMap((run) => [{ type: 'RUN_STARTED', threadId: 's1', ...run }, { type: 'RUN_FINISHED' }]),
    );
    expect((await shownOf()).page.turns).toMatchObject([
      { id: 'r2', kind: 'user', userMessageIds: [] },
      { id: 'r3', kind: 'between-run', trigger: { kind: 'unknown', taskIds: [] } },
    ]);
  });
});

describe('a late event', () => {
  test('of a removed turn stays where it arrived', async () => {
    const call: AgUiEvent[] = [{ type: 'TOOL_CALL_START', toolCallId: 't1', toolCallName: 'Slow' }];
    await server.write(userTurn('r1', 'One?', call));
    later(30);
    await server.retain();
    await server.write([{ type: 'TOOL_CALL_RESULT', messageId: 'x', toolCallId: 't1', content: 'at last' }]);
    const { ids, page } = await shownOf();
    expect(ids).toEqual([]);
    expect(page.turns.map(({ kind }) => kind)).toEqual(['none']);
  });

  test('with the id of a removed turn starts another turn, even before the old events are removed', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    const { writes } = server.target.database;
    // and the process was killed before it removed the events
    await writes.run((transaction) => removeOldTurns(transaction, 's1', EVERYTHING, server.now));
    const again = userTurn('r2', 'Again?', 'Again.').map((event) =>
      event.runId === 'r2' ? { ...event, runId: 'r1' } : event,
    );
    await server.write(again);
    const { ids, page } = await shownOf();
    expect(ids).toEqual(['r1']);
    expect(page.turns.flatMap(({ items }) => items).map(({ id }) => id)).toEqual(['r2/question', 'r2/answer']);
  });

  test('in a snapshot of removed parts restores none of them', async () => {
    const told = (id: string, role: string) => ({ id, role, content: `text of ${id}` });
    const first = [told('m1', 'user'), told('a1', 'assistant')];
    await server.write([{ type: 'MESSAGES_SNAPSHOT', messages: first }]);
    later(30);
    await server.retain();
    await server.write(message('m2', 'text of m2', 'user'));
    const all = [...first, told('m2', 'user'), told('a2', 'assistant')];
    await server.write([{ type: 'MESSAGES_SNAPSHOT', messages: all }]);
    const { page } = await shownOf();
    expect(page.turns.flatMap(({ items }) => items).map(({ id }) => id)).toEqual(['m2', 'a2']);
  });

  test('in a snapshot that extends removed parts is stored where it arrived', async () => {
    await server.write([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' }, ...message('a1', 'Half')]);
    await server.write([{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r1' }]);
    await server.target.database.writes.run((transaction) => removeOldTurns(transaction, 's1', EVERYTHING, server.now));
    await server.write([
      { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'a1', role: 'assistant', content: 'Half, and more' }] },
    ]);
    const { page } = await shownOf();
    expect(page.turns).toMatchObject([{ kind: 'none', items: [{ id: 'a1', text: 'Half, and more' }] }]);
  });

  test('about a task is parked when another session has its id, unless it names the run', async () => {
    await server.write(userTurn('r1', 'Go', [taskStarted('1', 'Ours'), taskEnded('1', 'completed')]), 's1');
    later(30);
    await server.retain();
    const runs = [taskStarted('1', 'Theirs'), taskStarted('2', 'Theirs, too', { run_id: 'x' })];
    await server.write(userTurn('q1', 'Go', runs), 's2');
    // as by a restarted agent that reports again how its tasks ended
    await server.write([taskEnded('1', 'completed'), taskEnded('2', 'completed', { run_id: 'x' })], 's1');
    expect((await server.tasks('s2'))?.tasks.map(({ id, status }) => [id, status])).toEqual([
      ['1', 'running'],
      ['2', 'completed'],
    ]);
    expect(await server.rows(`SELECT code, task_id, parked FROM quarantine`)).toEqual([
      { code: 'task_of_several_sessions', task_id: '1', parked: 'parked' },
    ]);
    expect(await server.faults()).toEqual([]);
  });

  test('cannot report removed turns by itself', async () => {
    await server.write(userTurn('r1', 'One?', 'One.'));
    const removed = { upTo: '999999', turns: 9 };
    await server.write([{ type: 'CUSTOM', name: CUSTOM.removed, value: {}, metadata: { interlude: { removed } } }]);
    const { ids, page } = await shownOf();
    expect(ids).toEqual(['r1']);
    expect(page.removed).toBeUndefined();
    expect(transcriptFromPage(page).removed).toBeUndefined();
  });
});

test('a stopped sweep finishes its slice, and the next start removes the rest', async () => {
  for (let index = 0; index < 5; index += 1) await server.write(userTurn(`r${index}`, 'Go?', 'Gone.'), `s${index}`);
  later(11);
  const { context } = server.target;
  const keeper = new HistoryKeeper(context, historyRetention({ INTERLUDE_RETENTION_DAYS: '10' }));
  const stopped = server.target.database.onCommit(() => keeper.close());
  await keeper.removeOld();
  stopped();
  const count = async () => Number((await server.rows('SELECT count(*) AS count FROM events'))[0]?.count);
  expect(await count()).toBeGreaterThan(5 * 5);
  expect(await server.faults()).toEqual([]);
  await server.retain();
  expect(await count()).toBe(5);
});

/** A file has one writer at a time. On a server others commit in between. */
describe('an event during the removal of the oldest turns', () => {
  test('is found by the sweep, which reads again', async ({ skip }) => {
    const { writes } = server.target.database;
    if (!(writes instanceof OptimisticWrites)) skip();
    await server.write(userTurn('r1', 'One?', 'One.'));
    await server.write(userTurn('r2', 'Two?', [taskStarted('job', 'A job')]));
    let looks = 0;
    await writes.run((transaction) => {
      looks += 1;
      const met = looks > 1 ? transaction : metAfterFirstLook(transaction, meanwhile);
      return removeOldTurns(met, 's1', EVERYTHING, server.now);
    });
    const { ids, page } = await shownOf();
    expect(looks).toBe(2);
    expect(ids).toEqual(['r3']);
    expect(page.removed).toMatchObject({ turns: 2 });
    expect((await server.tasks())?.tasks).toEqual([]);
  });

  const meanwhile = async () => {
    await server.write([taskEnded('job', 'completed')]);
    await server.write([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r3' }, ...message('m3', 'Working on it')]);
  };

  function metAfterFirstLook(transaction: WriteTransaction, meet: () => Promise<void>): WriteTransaction {
    let hasMet = false;
    const batch: WriteTransaction['batch'] = async (statements) => {
      const answers = await transaction.batch(statements);
      if (!hasMet) await meet();
      hasMet = true;
      return answers;
    };
    return new Proxy(transaction, {
      get: (target, name) => {
        if (name === 'batch') return batch;
        const found = Reflect.get(target, name, target);
        return typeof found === 'function' ? found.bind(target) : found;
      },
    });
  }
});

describe('history after a wrong clock', () => {
  test('stays while it is young, wherever it is', async () => {
    for (let index = 0; index < 10; index += 1) await server.write(userTurn(`young${index}`, 'Go?', 'Gone.'));
    const { now } = server;
    server.now = 0;
    for (let index = 0; index < 12; index += 1) await server.write(userTurn(`early${index}`, 'Go?', 'Gone.'));
    server.now = now;
    later(1);
    await server.write(userTurn('last', 'Go?', 'Gone.'));
    await server.retain();
    expect((await shownOf()).ids).toContain('young0');
    expect((await shownOf()).ids).toContain('last');
  });
});

describe('an unanswered task that ended', () => {
  test('is removed once nothing after its end is old, and reported once', async () => {
    await server.write(userTurn('r0', 'Go', [taskStarted('job', 'A job')]));
    later(1);
    await server.write(userTurn('r1', 'Stop it', [taskEnded('job', 'stopped')]));
    const positions = new Set<unknown>();
    for (let day = 0; day < 30; day += 1) {
      later(1);
      await server.write(userTurn(`day${day}`, 'And?', 'So.'));
      await server.retain();
      for (const { updated_position: at } of await server.rows('SELECT updated_position FROM tasks')) positions.add(at);
    }
    expect((await server.tasks())?.tasks).toEqual([]);
    expect(positions.size).toBe(1);
    expect(await server.faults()).toEqual([]);
  });

  test('stays while it may still be running', async () => {
    await server.write(userTurn('r0', 'Go', [taskStarted('job', 'A job')]));
    await server.target.database.writes.run((transaction) =>
      transaction.execute(`UPDATE tasks SET status = 'lost', presumed = 'unheard',
        body = json_set(body, '$.presumed', 'unheard')`),
    );
    later(30);
    await server.retain();
    expect((await server.tasks())?.tasks).toMatchObject([{ id: 'job', status: 'lost' }]);
  });
});

describe('1,000 tasks of a turn', () => {
  test('lose their turn id when it is removed', async () => {
    const many = 1_000;
    const starts = Array.from({ length: many }, (_, index) => taskStarted(`job${index}`, 'A job'));
    await server.write([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r0' }]);
    for (let index = 0; index < many; index += 500) await server.write(starts.slice(index, index + 500));
    await server.write([{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r0' }]);
    later(30);
    await server.retain();
    expect((await server.tasks())?.tasks.every(({ startedInTurnId }) => startedInTurnId === null)).toBe(true);
    expect(await server.faults()).toEqual([]);
  });
});

test('a snapshot of removed parts restores none of them when no known part is left', async () => {
  const told = (id: string, role: string) => ({ id, role, content: `text of ${id}` });
  const first = [told('m1', 'user'), told('a1', 'assistant')];
  await server.write([{ type: 'MESSAGES_SNAPSHOT', messages: first }]);
  later(30);
  await server.retain();
  await server.write([{ type: 'MESSAGES_SNAPSHOT', messages: [...first, told('a2', 'assistant')] }]);
  const { page } = await shownOf();
  expect(page.turns.flatMap(({ items }) => items).map(({ id }) => id)).toEqual(['a2']);
});
