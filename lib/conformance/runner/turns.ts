import { CUSTOM } from '@interlude/protocol/event-fields';
import { agree, type Check, hold } from '../check';
import { type RunnerStage, saidIn } from './runner-stage';

const WHY = '4, Where events stand, and 7, Obligations';
const NAME = 'Put the message into metadata.interlude.userMessageIds of the run, on its start and on its end.';

export const TURNS: readonly Check<RunnerStage>[] = [
  {
    group: 'turns',
    name: 'a turn names the message that it answers, and holds what was said in it',
    why: WHY,
    async run(stage) {
      const turn = await stage.obey('say hello there');
      const seen = { kind: turn.kind, state: turn.state, said: saidIn(turn) };
      agree('the turn', seen, { kind: 'user', state: 'finished', said: ['hello there'] }, NAME);
    },
  },
  {
    group: 'turns',
    name: 'of two messages in a row each is answered by the turn that it began',
    why: WHY,
    async run(stage) {
      const [first, second] = [await stage.say('say the first'), await stage.say('say the second')];
      const [one, two] = [await stage.answered(first), await stage.answered(second)];
      const seen = [one, two].map((turn) => [turn.userMessageIds, saidIn(turn)]);
      const expected = [
        [[first.id], ['the first']],
        [[second.id], ['the second']],
      ];
      agree('the turns', seen, expected, NAME);
    },
  },
  {
    group: 'turns',
    name: 'a turn that the agent begins by itself is between runs, and names the task that woke it',
    why: WHY,
    async run(stage) {
      await stage.obey('background 0.2');
      const task = String(stage.journal.wrote('task-start').at(-1)?.task);
      const woken = () => stage.turns.find(({ kind, state }) => kind === 'between-run' && state !== 'open');
      const todo = 'Read the agent between its turns, too; say turn "between-run" and the trigger on RUN_STARTED.';
      const turn = await stage.until('a turn between runs', woken, todo, { seen: () => stage.turns.at(-1)?.kind });
      agree('its trigger', turn.trigger, { kind: 'task', taskIds: [task] }, todo);
      const begin = turn.items.map(({ kind }) => kind);
      agree('its items', begin, ['task', 'message'], 'Tell the end of the task, and then the turn that it woke.');
    },
  },
  {
    group: 'turns',
    name: 'a turn that failed says why',
    why: WHY,
    async run(stage) {
      const { state, error } = await stage.obey('fail no more tokens');
      agree('the turn', { state, error }, { state: 'failed', error: { message: 'no more tokens' } }, 'Tell RUN_ERROR.');
    },
  },
  {
    group: 'turns',
    name: 'a turn that a person interrupts is told as interrupted, and the next one goes on as always',
    why: '7, Interrupts',
    async run(stage) {
      await stage.takes('interrupt');
      const { id, userMessageIds } = await stage.begun('hang');
      const command = stage.fake.commands.ask('interrupt', stage.sessionId, { turnId: id });
      await stage.acked(command, ['done']);
      const ended = () => stage.turns.find((turn) => turn.id === id && turn.state !== 'open');
      const todo = 'End it with RUN_FINISHED, outcome {"type":"cancelled"}.';
      const { state } = await stage.until('the end of the turn', ended, todo);
      agree('the turn', { state, userMessageIds }, { state: 'interrupted' }, todo);
      agree('the next turn', saidIn(await stage.obey('say go on')), ['go on'], 'Let the agent go on.');
    },
  },
  {
    group: 'turns',
    name: 'an agent that dies in the middle of a turn leaves none open, and a message finds it again',
    why: '3, What event may say',
    async run(stage) {
      const { id } = await stage.say('crash 7');
      const ended = () => {
        // A runner may end with its agent, and say so when it is started again.
        stage.revive();
        return stage.turns.find(({ userMessageIds, state }) => userMessageIds.includes(id) && state !== 'open');
      };
      const todo = 'Tell RUN_ERROR when the agent’s process ends in a turn, or session:ended.';
      const { state } = await stage.until('the end of the turn', ended, todo, {
        seen: () => stage.turns.at(-1)?.state,
      });
      hold(state !== 'finished', 'a turn that failed or was interrupted', state, todo);
      const again = 'Start the agent again, or end with it and take up its session when you are started.';
      agree('the next turn', saidIn(await stage.obey('say back again')), ['back again'], again);
    },
  },
  {
    group: 'turns',
    name: 'what was open when the runner was killed is closed by the next one before anything new',
    why: '3, What status may say',
    async run(stage) {
      await stage.obey('background 30');
      const { id } = await stage.begun('hang');
      await stage.kill9();
      const said = saidIn(await stage.obey('say after the kill'));
      agree('the next turn', said, ['after the kill'], 'Go on in the same session, with the same outbox.');
      const entries = stage.fake.ledger.entries(stage.sessionId).map(({ event }) => event);
      const begun = entries.findIndex(({ type, runId }) => type === 'RUN_STARTED' && runId === id);
      const next = entries
        .slice(begun + 1)
        .find(({ type, name }) => /^RUN_/.test(type) || name === CUSTOM.sessionEnded);
      const todo = 'Keep what is open with the events that opened it, and close it first when you start.';
      hold(next !== undefined && next.type !== 'RUN_STARTED', 'the end of the turn before the next begins', next, todo);
      const running = stage.fake.ledger.tasks(stage.sessionId).filter(({ status }) => status === 'running');
      const listed = JSON.stringify(stage.status.tasks ?? []);
      const left = running.filter((task) => listed.includes(task.id)).map((task) => task.id);
      agree('the tasks that are told to run', left, [], 'End its tasks as lost, or list them no more.');
    },
  },
];
