import { agree, type Check } from '../check';
import { custom, finished, itemsOf, started, text } from './played-agent';
import type { ServerStage } from './server-stage';

const WHY = '4, Where events stand';
const TODO = 'Place events as lib/protocol/projections does: placeEvents, then foldItems.';

/** @throws Unmet unless the turns are these */
function shown(turns: Record<string, unknown>[], expected: object[]): void {
  const seen = turns.map((turn) => ({ ...turn, items: itemsOf(turn) }));
  agree('the turns', seen, expected, TODO);
}

export const TURNS: readonly Check<ServerStage>[] = [
  {
    group: 'turns',
    name: 'a user turn has the message that it answers, and then what was said in it, in order',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('user-turn');
      await agent.tell(
        ...text('m1', 'a question', 'user'),
        started('r1', { turn: 'user', userMessageIds: ['m1'] }),
        { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' },
        { type: 'TOOL_CALL_END', toolCallId: 'c1' },
        { type: 'TOOL_CALL_RESULT', messageId: 'c1/result', toolCallId: 'c1', content: 'done', role: 'tool' },
        ...text('m2', 'an answer'),
        finished('r1', { userMessageIds: ['m1'] }),
      );
      const items = ['message a question', 'tool-call Bash', 'message an answer'];
      shown(await agent.turns(), [{ id: 'r1', kind: 'user', state: 'finished', userMessageIds: ['m1'], items }]);
    },
  },
  {
    group: 'turns',
    name: 'a message is in the turn that names it, also if that only does so at its end',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('late-claim');
      await agent.tell(
        started('r1', { turn: 'user', userMessageIds: [] }),
        ...text('m1', 'in between', 'user'),
        ...text('m2', 'both'),
        finished('r1', { userMessageIds: ['m1'] }),
        ...text('m3', 'for the next one', 'user'),
        started('r2', { turn: 'user', userMessageIds: ['m3'] }),
        finished('r2', { userMessageIds: ['m3'] }),
      );
      shown(await agent.turns(), [
        { id: 'r1', userMessageIds: ['m1'], items: ['message in between', 'message both'] },
        { id: 'r2', userMessageIds: ['m3'], items: ['message for the next one'] },
      ]);
    },
  },
  {
    group: 'turns',
    name: 'a turn that the agent began by itself begins with the end of the task that woke it',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('between-run');
      const trigger = { kind: 'task', taskIds: ['t1'] };
      await agent.tell(
        started('r1'),
        custom('task:started', { task_id: 't1', description: 'a poll' }),
        finished('r1'),
        custom('task:completed', { task_id: 't1', status: 'failed', exit_code: 3 }),
        started('r2', { turn: 'between-run', trigger }),
        ...text('m1', 'it exited with code 3'),
        finished('r2', { trigger }),
      );
      shown(await agent.turns(), [
        { id: 'r1', kind: 'user', items: ['task started'] },
        { id: 'r2', kind: 'between-run', trigger, items: ['task failed', 'message it exited with code 3'] },
      ]);
    },
  },
  {
    group: 'turns',
    name: 'a turn that failed says why, and one that was cancelled was interrupted',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('ends');
      await agent.tell(
        started('r1'),
        { type: 'RUN_ERROR', runId: 'r1', message: 'no more tokens', code: 'quota' },
        started('r2'),
        finished('r2', {}, { outcome: { type: 'cancelled' } }),
        started('r3'),
        started('r4'),
      );
      shown(await agent.turns(), [
        { id: 'r1', state: 'failed', error: { message: 'no more tokens', code: 'quota' } },
        { id: 'r2', state: 'interrupted' },
        { id: 'r3', state: 'interrupted' },
        { id: 'r4', state: 'open' },
      ]);
    },
  },
  {
    group: 'turns',
    name: 'what is said outside of any turn stands by itself, in its place',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('none');
      await agent.tell(
        started('r1'),
        finished('r1'),
        ...text('m1', 'by the way'),
        started('r2'),
        ...text('m2', 'in a turn'),
        finished('r2'),
        ...text('m3', 'once more'),
      );
      shown(await agent.turns(), [
        { id: 'r1', items: [] },
        { kind: 'none', items: ['message by the way'] },
        { id: 'r2', items: ['message in a turn'] },
        { kind: 'none', items: ['message once more'] },
      ]);
    },
  },
];
