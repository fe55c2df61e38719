import type { Fields } from '@interlude/protocol/fields';
import { agree, type Check } from '../check';
import { custom, type PlayedAgent } from './played-agent';
import type { ServerStage } from './server-stage';

const WHY = '3, Ingest, 11';
const began = (task_id: string, more: Fields = {}) =>
  custom('task:started', { task_id, description: 'a poll', ...more });
const ended = (task_id: string, status: string, more: Fields = {}) =>
  custom('task:completed', { task_id, status, ...more });

/** The tasks of a session, by default the agent's first. */
async function tasks(stage: ServerStage, agent: PlayedAgent, sessionId = agent.sessionId): Promise<Fields[]> {
  const { body } = await stage.read(`/sessions/${encodeURIComponent(sessionId)}/tasks`);
  return body.tasks as Fields[];
}

export const TASKS: readonly Check<ServerStage>[] = [
  {
    group: 'tasks',
    name: 'a task ends once: its first end stands, and a guess gives way to it',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('first-end');
      await agent.tell(
        began('t1'),
        ended('t1', 'failed', { exit_code: 3 }),
        ended('t1', 'completed'),
        began('t2'),
        ended('t2', 'lost'),
        ended('t2', 'completed'),
      );
      const expected = [
        { id: 't1', status: 'failed', exitCode: 3 },
        { id: 't2', status: 'completed' },
      ];
      agree('the tasks', await tasks(stage, agent), expected, 'Keep the first end; let `lost` give way to any other.');
    },
  },
  {
    group: 'tasks',
    name: 'an end that another session reports goes to the session that began the task, and says who reported it',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('elsewhere');
      const other = `${agent.id}/other`;
      await agent.tell(began('t1'));
      await agent.outbox.send(agent.event(ended('t1', 'failed', { exit_code: 3 }), other));
      const expected = [{ id: 't1', status: 'failed', exitCode: 3, reportedBy: other }];
      const todo = 'Give the end to the task’s own session, with metadata.interlude.reportedBy.';
      agree('the owner’s tasks', await tasks(stage, agent), expected, todo);
      agree('the reporter’s tasks', await tasks(stage, agent, other), [], todo);
    },
  },
  {
    group: 'tasks',
    name: 'the same id begun by two sessions is two tasks',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('same-id');
      const other = `${agent.id}/other`;
      await agent.tell(began('t1'));
      await agent.outbox.send(agent.event(began('t1'), other), agent.event(ended('t1', 'completed'), other));
      const todo = 'Know a task by its session and its id.';
      agree('the first one', await tasks(stage, agent), [{ status: 'running' }], todo);
      agree('the other one', await tasks(stage, agent, other), [{ status: 'completed' }], todo);
    },
  },
  {
    group: 'tasks',
    name: 'a task that may be of several sessions is adopted by none: it is parked, until somebody says whose it is',
    why: '3, Ingest, 11 and 7, Parked records',
    async run(stage) {
      const agent = stage.agent('parked');
      const other = `${agent.id}/other`;
      await agent.outbox.send(agent.event(custom('x', {})), agent.event(custom('x', {}), other));
      const answer = await agent.tell(ended('t9', 'completed'));
      const todo = 'Quarantine it as task_of_no_session, and list it under /parked.';
      agree('the answer', answer, { rejected: [{ seq: 3, code: 'task_of_no_session' }] }, todo);
      const path = `/agents/${encodeURIComponent(agent.id)}/parked`;
      const { records } = (await stage.read(path)).body as { records: { position: string }[] };
      agree('what is parked', records, [{ seq: 3, parked: { state: 'parked', taskId: 't9' } }], todo);
      const assigned = { state: 'assigned', sessionId: other, settled: 1 };
      await stage.ask(`${path}/${records[0]?.position}/assign`, { sessionId: other }, { status: 200, ...assigned });
      const given = [{ id: 't9', status: 'completed' }];
      agree('the tasks', await tasks(stage, agent, other), given, 'Store it there.');
    },
  },
  {
    group: 'tasks',
    name: 'the end of a process ends what it ran: its tasks are lost, with why',
    why: '3, What status may say',
    async run(stage) {
      const agent = stage.agent('process');
      await agent.tell(began('t1'), custom('session:ended', { reason: 'it crashed', exitCode: 1 }));
      const [task] = await tasks(stage, agent);
      const why = typeof task?.error === 'string' && task.error !== '';
      agree('the task', { ...task, why }, { status: 'lost', why: true }, 'End it as lost, with why in its error.');
    },
  },
];
