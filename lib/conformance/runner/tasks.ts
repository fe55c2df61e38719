import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { agree, type Check, hold } from '../check';
import { type RunnerStage, tasksListed } from './runner-stage';

const WHY = '3, Ingest, 11';

export const TASKS: readonly Check<RunnerStage>[] = [
  {
    group: 'tasks',
    name: 'a background task is told when it begins, and how it ended',
    why: WHY,
    async run(stage) {
      await stage.obey('background 0.5');
      const id = String(stage.journal.wrote('task-start').at(-1)?.task);
      const of = () => stage.fake.ledger.tasks(stage.sessionId).find((task) => task.id === id);
      const begins = 'Tell task:started with task_id and description, in the turn in which it began.';
      const task = await stage.until('the task', of, begins);
      hold(task.startedInTurnId !== null, 'the task to begin in a turn', task.startedInTurnId, begins);
      const ended = () => of()?.status !== 'running' && of();
      const todo = 'Tell task:completed with status and exit_code, also between turns.';
      const { status, exitCode } = await stage.until('its end', ended, todo);
      agree('its end', { status, exitCode }, { status: 'failed', exitCode: 3 }, todo);
    },
  },
  {
    group: 'tasks',
    name: 'a task that a person stops is told as stopped',
    why: '7, Commands',
    async run(stage) {
      await stage.takes('task.stop');
      await stage.obey('background 60');
      const taskId = String(stage.journal.wrote('task-start').at(-1)?.task);
      const command = stage.fake.commands.ask('task.stop', stage.sessionId, { taskId });
      await stage.acked(command, ['done']);
      const ended = () =>
        stage.fake.ledger.tasks(stage.sessionId).find(({ id, status }) => id === taskId && status !== 'running');
      const { status } = await stage.until('its end', ended, 'Tell task:completed once the agent says so.');
      agree('its end', status, 'stopped', 'Tell it with the status "stopped".');
    },
  },
  {
    group: 'tasks',
    name: 'a status record that lists tasks lists each that runs, and none that has ended',
    why: '3, What status may say',
    async run(stage) {
      await stage.obey('background 0.6');
      await stage.obey('background 0.3');
      const open = new Set<string>();
      const odd: Fields[] = [];
      const look = () => {
        open.clear();
        odd.length = 0;
        // A report is of its moment, wherever an outbox has put it: what had ended by then it need not list.
        const endedAt = new Map<string, number>();
        for (const { record } of stage.fake.ledger.taken) {
          const { name, value } = fieldsOf(record.event);
          if (name === 'task:completed') endedAt.set(textOf(fieldsOf(value).task_id) ?? '', Number(record.occurredAt));
        }
        for (const { record } of stage.fake.ledger.taken) {
          const { name, value } = fieldsOf(record.event);
          const id = textOf(fieldsOf(value).task_id) ?? '';
          if (name === 'task:started') open.add(id);
          if (name === 'task:completed') open.delete(id);
          if (name === 'session:ended') open.clear();
          const listed = record.kind === 'status' ? tasksListed(fieldsOf(record.status)) : null;
          const isLeftOut = (task: string) => (endedAt.get(task) ?? Infinity) > Number(record.occurredAt);
          const isOdd = listed !== null && [...open].some((task) => !listed.includes(task) && isLeftOut(task));
          if (isOdd) odd.push({ listed, running: [...open] });
        }
        return open.size === 0;
      };
      await stage.until('the ends of both', look, 'Tell task:completed.');
      const todo = 'A task that runs and is not listed counts as lost: list what its events say is open, or nothing.';
      agree('records that leave one out', odd.slice(0, 3), [], todo);
    },
  },
];
