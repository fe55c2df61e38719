import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import type { RequestItem, Task } from '@interlude/protocol/read-models';
import { requestDigest } from '@interlude/protocol/request-digest';
import { assert, assertMatch, checksOf } from '../check';
import type { FakeCommand } from './fake-interlude';
import { type RunnerTarget, textsIn } from './runner-target';

export const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}`);

const NAME_MESSAGE = 'Put the message into metadata.interlude.userMessageIds of the run, on its start and on its end.';

export const TURNS = checksOf<RunnerTarget>('turns', '4, Placement of events, and 7, Obligations', {
  'a turn names its message and holds its content': {
    todo: NAME_MESSAGE,
    async run(runner) {
      const turn = await runner.prompt('say hello there');
      const seen = { kind: turn.kind, state: turn.state, texts: textsIn(turn) };
      assertMatch('the turn', seen, { kind: 'user', state: 'finished', texts: ['hello there'] });
    },
  },
  'two messages in a row get a turn each': {
    todo: NAME_MESSAGE,
    async run(runner) {
      const messages = [await runner.send('say the first'), await runner.send('say the second')];
      const seen: unknown[] = [];
      for (const message of messages) {
        const turn = await runner.answer(message);
        seen.push([turn.userMessageIds, textsIn(turn)]);
      }
      const expected = [
        [[messages[0]?.id], ['the first']],
        [[messages[1]?.id], ['the second']],
      ];
      assertMatch('the turns', seen, expected);
    },
  },
  'a turn started by the agent is a between-run turn and names the task that caused it': {
    todo: 'Read the agent between its turns; send the end of the task, then RUN_STARTED with turn "between-run" and the trigger.',
    async run(runner) {
      await runner.prompt('background 0.2');
      const task = String(runner.journal.wrote('task-start').at(-1)?.task);
      const betweenRun = () => runner.turns.find(({ kind, state }) => kind === 'between-run' && state !== 'open');
      const turn = await runner.waitFor('a between-run turn', betweenRun, { seen: () => runner.turns.at(-1)?.kind });
      assertMatch('its trigger', turn.trigger, { kind: 'task', taskIds: [task] });
      const kinds = turn.items.map(({ kind }) => kind);
      assertMatch('its items', kinds, ['task', 'message']);
    },
  },
  'a failed turn gives a reason': {
    todo: 'Send RUN_ERROR.',
    async run(runner) {
      const { state, error } = await runner.prompt('fail no more tokens');
      assertMatch('the turn', { state, error }, { state: 'failed', error: { message: 'no more tokens' } });
    },
  },
  'an interrupted turn is reported as interrupted, and the next turn works': {
    why: '7, Interrupts',
    todo: 'End it with RUN_FINISHED, outcome {"type":"cancelled"}, and keep the agent running.',
    async run(runner) {
      await runner.requireSupport('interrupt');
      const { id } = await runner.startTurn('hang');
      await runner.ack(runner.queue('interrupt', { turnId: id }), ['done']);
      const { state } = await runner.turnEnd(id);
      assertMatch('the turn', { state }, { state: 'interrupted' });
      assertMatch('the next turn', await runner.promptTexts('say go on'), ['go on']);
    },
  },
  'an agent that crashes in a turn leaves no turn open, and accepts messages again': {
    why: '3, Events beyond AG-UI',
    todo: 'Send RUN_ERROR or session:ended when the agent’s process ends in a turn, and resume the session afterwards.',
    async run(runner) {
      const { id } = await runner.send('crash 7');
      const ended = () => {
        // A runner may end with its agent, and report that when it is started again.
        runner.startIfStopped();
        return runner.turns.find(({ userMessageIds, state }) => userMessageIds.includes(id) && state !== 'open');
      };
      const seen = () => runner.turns.at(-1)?.state;
      const { state } = await runner.waitFor('the end of the turn', ended, { seen });
      assert(state !== 'finished', 'a turn that failed or was interrupted', state);
      assertMatch('the next turn', await runner.promptTexts('say back again'), ['back again']);
    },
  },
  'work left open by a killed runner is closed before anything else is sent': {
    why: '3, Status records',
    todo: 'Store open work with the events that opened it, and close it before anything else at the next start.',
    async run(runner) {
      await runner.prompt('background 30');
      const { id } = await runner.startTurn('hang');
      await runner.kill();
      const texts = await runner.promptTexts('say after the kill');
      assertMatch('the next turn', texts, ['after the kill'], 'Continue the session with the same outbox.');
      const events = runner.fake.log.entries(runner.sessionId).map(({ event }) => event);
      const start = events.findIndex(({ type, runId }) => type === 'RUN_STARTED' && runId === id);
      const next = events.slice(start + 1).find(({ type, name }) => /^RUN_/.test(type) || name === CUSTOM.sessionEnded);
      const isClosed = next !== undefined && next.type !== 'RUN_STARTED';
      assert(isClosed, 'the end of the turn before the next begins', next);
      const listed = JSON.stringify(runner.status.tasks ?? []);
      const running = runner.fake.log
        .tasks(runner.sessionId)
        .filter((task) => task.status === 'running' && listed.includes(task.id));
      const tasks = running.map((task) => task.id);
      assertMatch('the tasks reported as running', tasks, [], 'End its tasks as lost, or stop listing them.');
    },
  },
});

/** Starts a background task. @returns the agent's id for it, and a function that waits for its end */
async function startTask(
  runner: RunnerTarget,
  seconds: number,
): Promise<{ taskId: string; started: () => Task | undefined; ended: () => Promise<Task> }> {
  await runner.prompt(`background ${seconds}`);
  const taskId = String(runner.journal.wrote('task-start').at(-1)?.task);
  const started = () => runner.fake.log.tasks(runner.sessionId).find(({ id }) => id === taskId);
  const ended = () => runner.waitFor('its end', () => started()?.status !== 'running' && started());
  return { taskId, started, ended };
}

/** The ids of the tasks that a status record lists; null if it lists none at all. */
function listedTasks(record: Fields): string[] | null {
  const { tasks } = fieldsOf(record.status);
  return Array.isArray(tasks) ? tasks.map((task) => String(fieldsOf(task).id)) : null;
}

export const TASKS = checksOf<RunnerTarget>('tasks', '3, Ingest, 11', {
  'a background task reports its start and its outcome': {
    todo: 'Send task:started in the turn that starts it, and task:completed with status and exit_code whenever it ends.',
    async run(runner) {
      const { started, ended } = await startTask(runner, 0.5);
      const task = await runner.waitFor('the task', started);
      assert(task.startedInTurnId !== null, 'the task to begin in a turn', task.startedInTurnId);
      const { status, exitCode } = await ended();
      assertMatch('its end', { status, exitCode }, { status: 'failed', exitCode: 3 });
    },
  },
  'a stopped task is reported as stopped': {
    why: '7, Commands',
    todo: 'Send task:completed with the status "stopped" once the agent reports it.',
    async run(runner) {
      await runner.requireSupport('task.stop');
      const { taskId, ended } = await startTask(runner, 60);
      await runner.ack(runner.queue('task.stop', { taskId }), ['done']);
      assertMatch('its end', (await ended()).status, 'stopped');
    },
  },
  'a status record with tasks lists every running task': {
    why: '3, Status records',
    todo: 'A running task that is not listed counts as lost: list every task that the events leave open, or none.',
    async run(runner) {
      await runner.prompt('background 0.6');
      await runner.prompt('background 0.3');
      const running = new Set<string>();
      const incomplete: Fields[] = [];
      const hasEnded = () => {
        running.clear();
        incomplete.length = 0;
        const records = runner.fake.log.accepted.map(({ record }) => {
          const { name, value } = fieldsOf(record.event);
          return { record, name, taskId: textOf(fieldsOf(value).task_id) ?? '', at: Number(record.occurredAt) };
        });
        // The outbox may send a report after later events, so a report need not list a task that ended before it was
        // made.
        const endedAt = new Map(
          records.flatMap(({ name, taskId, at }) => {
            return name === 'task:completed' ? [[taskId, at] as const] : [];
          }),
        );
        for (const { record, name, taskId, at } of records) {
          if (name === 'task:started') running.add(taskId);
          if (name === 'task:completed') running.delete(taskId);
          if (name === 'session:ended') running.clear();
          const listed = record.kind === 'status' ? listedTasks(record) : null;
          const isMissing = (task: string) => !listed?.includes(task) && (endedAt.get(task) ?? Infinity) > at;
          if (listed !== null && [...running].some(isMissing)) incomplete.push({ listed, running: [...running] });
        }
        return running.size === 0;
      };
      await runner.waitFor('the ends of both', hasEnded, { todo: 'Send task:completed.' });
      assertMatch('records that leave one out', incomplete.slice(0, 3), []);
    },
  },
});

/** Answers a permission as the dashboard does. */
function decide(runner: RunnerTarget, request: RequestItem, behavior: string, more: Fields = {}): FakeCommand {
  const { id: requestId, digest, openedPosition } = request;
  return runner.queue('permission.decision', { requestId, digest, openedPosition, behavior, ...more });
}

export const REQUESTS = checksOf<RunnerTarget>('requests', '7, Answers to requests', {
  'a permission request reaches people, and the agent gets one answer': {
    todo: 'Send the tool and the input as the agent gave them, pass the answer on once, and send request:resolved.',
    async run(runner) {
      await runner.requireSupport('permission.decision');
      const message = await runner.send('ask ls -l ü');
      const request = await runner.openRequest();
      const expected = { requestKind: 'permission', toolName: 'shell', input: { command: 'ls -l ü' } };
      assertMatch('the request', request, expected);
      const decision = decide(runner, request, 'allow');
      await runner.ack(decision, ['done']);
      runner.fake.commands.resend(decision);
      const turn = await runner.answer(message);
      assertMatch('the turn', textsIn(turn), ['allowed: ls -l ü']);
      await runner.ack(decision, ['done'], 2);
      assertMatch('the number of answers to the agent', runner.journal.received('answer', request.id).length, 1);
      const { outcome } = turn.items.find((item): item is RequestItem => item.kind === 'request') ?? {};
      assertMatch('its outcome', outcome, 'allowed');
    },
  },
  'an answer with another digest is refused, and the agent keeps waiting': {
    todo: 'Compute the digest from the open request, and refuse an answer with another one.',
    async run(runner) {
      await runner.requireSupport('permission.decision');
      const message = await runner.send('ask rm -r build');
      const request = await runner.openRequest();
      const { sessionId } = runner;
      const other = { sessionId, requestId: request.id, tool: 'shell', input: { command: 'ls' } };
      const digest = requestDigest({ ...other, position: request.openedPosition ?? '0' });
      await runner.ack(decide(runner, request, 'allow', { digest }), ['failed']);
      assertMatch('the number of answers to the agent', runner.journal.received('answer', request.id).length, 0);
      await runner.ack(decide(runner, request, 'deny'), ['done']);
      assertMatch('the turn', textsIn(await runner.answer(message)), ['denied: rm -r build']);
    },
  },
  'a second answer to a request is refused': {
    todo: 'Answer each request once.',
    async run(runner) {
      await runner.requireSupport('permission.decision');
      const message = await runner.send('ask make');
      const request = await runner.openRequest();
      await runner.ack(decide(runner, request, 'deny'), ['done']);
      await runner.answer(message);
      await runner.ack(decide(runner, request, 'allow'), ['failed']);
      assertMatch('the number of answers to the agent', runner.journal.received('answer', request.id).length, 1);
    },
  },
  'a question reaches people, and the agent gets the answers': {
    todo: 'Pass the answers on to the agent.',
    async run(runner) {
      await runner.requireSupport('question.answer');
      const message = await runner.send('question Which colour?');
      const { id: requestId, digest, openedPosition } = await runner.openRequest();
      const answers = { 'Which colour?': 'green' };
      await runner.ack(runner.queue('question.answer', { requestId, digest, openedPosition, answers }), ['done']);
      assertMatch('the turn', textsIn(await runner.answer(message)), ['answered: {"Which colour?":"green"}']);
    },
  },
});

export const ORDER = checksOf<RunnerTarget>('order', '8, Invariants, 2', {
  'a hundred texts arrive once and in order': {
    todo: 'Number records in the order in which the agent wrote.',
    async run(runner) {
      assertMatch('the texts', await runner.promptTexts('count 100 0'), numbers(100));
    },
  },
  'records of interleaved turns and tasks arrive in the order of the agent': {
    todo: 'Never reorder records of a session.',
    async run(runner) {
      await runner.ensureRunning();
      const since = Date.now();
      await runner.prompt('background 0.05');
      await runner.prompt('count 10 10');
      const hasWoken = () =>
        runner.turns.some((turn) => turn.kind === 'between-run' && turn.startedAt >= since && turn.endedAt);
      await runner.waitFor('the turn that the task woke', hasWoken, { todo: 'Send its beginning and its end.' });
      const written = runner.journal.wrote('say').filter(({ at }) => at >= since);
      const ids = written.map(({ id }) => String(id));
      const sent = runner.fake.log.entries(runner.sessionId).map(({ event }) => String(event.messageId));
      const seen = [...new Set(sent)].filter((id) => ids.includes(id));
      assertMatch('the texts', seen, ids);
    },
  },
});
