import type { RequestItem } from '@interlude/protocol/read-models';
import { requestDigest } from '@interlude/protocol/request-digest';
import { agree, type Check } from '../check';
import type { FakeCommand } from './fake-commands';
import { type RunnerStage, saidIn } from './runner-stage';

const WHY = '7, Answers to requests';

/** Answers a permission as the dashboard does. */
function decide(stage: RunnerStage, request: RequestItem, behavior: string, more: object = {}): FakeCommand {
  const { id: requestId, digest, openedPosition } = request;
  const body = { requestId, digest, openedPosition, behavior, ...more };
  return stage.fake.commands.ask('permission.decision', stage.sessionId, body);
}

const given = (stage: RunnerStage, id: string) => stage.journal.got('answer').filter((line) => line.id === id);

export const REQUESTS: readonly Check<RunnerStage>[] = [
  {
    group: 'requests',
    name: 'a permission is asked of people, and the agent hears what was answered, once',
    why: WHY,
    async run(stage) {
      await stage.takes('permission.decision');
      const message = await stage.say('ask ls -l ü');
      const request = await stage.asked();
      const { toolName, input, requestKind } = request;
      const expected = { requestKind: 'permission', toolName: 'shell', input: { command: 'ls -l ü' } };
      agree(
        'the request',
        { requestKind, toolName, input },
        expected,
        'Tell the tool and the input as the agent gave them.',
      );
      const decision = decide(stage, request, 'allow');
      await stage.acked(decision, ['done']);
      stage.fake.commands.again(decision);
      const turn = await stage.answered(message);
      agree('the turn', saidIn(turn), ['allowed: ls -l ü'], 'Give the answer to the agent.');
      await stage.acked(decision, ['done'], 2);
      agree('what the agent got', given(stage, request.id).length, 1, 'Act once on each command id.');
      const { outcome } = turn.items.find((item): item is RequestItem => item.kind === 'request') ?? {};
      agree('its outcome', outcome, 'allowed', 'Tell request:resolved with the outcome.');
    },
  },
  {
    group: 'requests',
    name: 'an answer to anything else than what is asked is refused, and the agent goes on waiting',
    why: WHY,
    async run(stage) {
      await stage.takes('permission.decision');
      const message = await stage.say('ask rm -r build');
      const request = await stage.asked();
      const { sessionId } = stage;
      const other = { sessionId, requestId: request.id, tool: 'shell', input: { command: 'ls' } };
      const digest = requestDigest({ ...other, position: request.openedPosition ?? '0' });
      const wrong = decide(stage, request, 'allow', { digest });
      await stage.acked(wrong, ['failed']);
      const todo = 'Compute the digest yourself, over what you hold, and refuse what does not agree.';
      agree('what the agent got', given(stage, request.id).length, 0, todo);
      await stage.acked(decide(stage, request, 'deny'), ['done']);
      const turn = await stage.answered(message);
      agree('the turn', saidIn(turn), ['denied: rm -r build'], 'Give the right answer to the agent.');
    },
  },
  {
    group: 'requests',
    name: 'a second answer to a request is refused',
    why: WHY,
    async run(stage) {
      await stage.takes('permission.decision');
      const message = await stage.say('ask make');
      const request = await stage.asked();
      await stage.acked(decide(stage, request, 'deny'), ['done']);
      await stage.answered(message);
      await stage.acked(decide(stage, request, 'allow'), ['failed']);
      agree('what the agent got', given(stage, request.id).length, 1, 'Answer each request once.');
    },
  },
  {
    group: 'requests',
    name: 'a question is asked of people, and the agent hears the answers',
    why: WHY,
    async run(stage) {
      await stage.takes('question.answer');
      const message = await stage.say('question Which colour?');
      const { id: requestId, digest, openedPosition } = await stage.asked();
      const body = { requestId, digest, openedPosition, answers: { 'Which colour?': 'green' } };
      await stage.acked(stage.fake.commands.ask('question.answer', stage.sessionId, body), ['done']);
      const said = ['answered: {"Which colour?":"green"}'];
      agree('the turn', saidIn(await stage.answered(message)), said, 'Give the answers to the agent.');
    },
  },
];
