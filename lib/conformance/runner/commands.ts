import { attachmentKind, supportedAttachments } from '@interlude/protocol/attachments';
import { fieldsOf, textOf } from '@interlude/protocol/fields';
import { agree, type Check, hold, NotDone } from '../check';
import { type RunnerStage, saidIn } from './runner-stage';

const WHY = '7, Commands';
/** A runner that has been fenced and comes back does so within this time. */
const COMES_BACK_MS = 2_500;
/** Acknowledgements may be under way for so long. One that never comes is another check's affair. */
const UNDER_WAY_MS = 5_000;
const PIECES_MS = 30;
/** An agent on a busy machine reads so long after it was written to. */
const READ_MS = 1_500;
/** One of each kind. */
const CARRIED = [
  { hash: '0'.repeat(64), name: 'shot.png', mediaType: 'image/png', bytes: 68 },
  { hash: '1'.repeat(64), name: 'notes.txt', mediaType: 'text/plain', bytes: 12 },
];

const gotIt = (stage: RunnerStage, id: string) => stage.journal.got('message').filter((line) => line.id === id);

export const COMMANDS: readonly Check<RunnerStage>[] = [
  {
    group: 'commands',
    name: 'a message is acknowledged as delivered once the agent has it',
    why: WHY,
    async run(stage) {
      await stage.obey('say I am there');
      const message = await stage.say('say thanks');
      const { at, runner } = await stage.acked(message, ['delivered', 'done']);
      const line = await stage.until(
        'the message at the agent',
        () => gotIt(stage, message.id)[0],
        'Give it to the agent.',
      );
      hold(line.at <= at + READ_MS, 'the message at the agent by then', line, 'Acknowledge it afterwards.');
      const of = stage.fake.commands.streamed.at(-1)?.runner;
      const todo = 'Say runner and startedAt with each acknowledgement, as on the stream.';
      agree('the runner of the acknowledgement', runner, of, todo);
      await stage.answered(message);
    },
  },
  {
    group: 'commands',
    name: 'a command that comes several times is done once, and acknowledged each time',
    why: WHY,
    async run(stage) {
      await stage.running();
      const message = stage.fake.commands.message(stage.sessionId, 'say once', 2);
      await stage.answered(message);
      stage.fake.commands.again(message);
      const before = stage.fake.commands.acks.filter(({ commandId }) => commandId === message.id).length;
      await stage.acked(message, ['delivered', 'done'], before + 1);
      await stage.obey('say next');
      agree('how often the agent got it', gotIt(stage, message.id).length, 1, 'Remember the ids that you have taken.');
    },
  },
  {
    group: 'commands',
    name: 'a command that was done before the runner was killed is acknowledged again, and done no second time',
    why: WHY,
    async run(stage) {
      await stage.running();
      stage.fake.commands.refusesAcks = 503;
      const message = await stage.say('say before the kill');
      await stage.answered(message);
      await stage.acked(message, ['delivered', 'done']);
      await stage.kill9();
      stage.fake.commands.refusesAcks = null;
      const before = stage.fake.commands.acks.length;
      await stage.running();
      const todo = 'Keep the ids on disk, and acknowledge what is sent again, or was not heard.';
      const isAgain = () => stage.fake.commands.acks.slice(before).some(({ commandId }) => commandId === message.id);
      await stage.until('another acknowledgement', isAgain, todo);
      await stage.obey('say after the kill');
      agree('how often the agents got it', gotIt(stage, message.id).length, 1, todo);
    },
  },
  {
    group: 'commands',
    name: 'a command of an unknown type is acknowledged as failed, with a reason',
    why: WHY,
    async run(stage) {
      await stage.running();
      const command = stage.fake.commands.ask('coffee.make', stage.sessionId, { sugar: 2 });
      const { reason } = await stage.acked(command, ['failed']);
      hold(reason !== null, 'a reason', reason, 'Say why, in a sentence.');
      await stage.obey('say still here');
    },
  },
  {
    group: 'commands',
    name: 'unknown frames, comments and frames that come in pieces are no trouble',
    why: '2, Common rules, and 5, Live',
    async run(stage) {
      await stage.running();
      stage.fake.commands.say(': a comment\n\nevent: weather\ndata: {"rain":true}\n\n');
      const said = 'say Grüße, 世界 😀';
      const bytes = Buffer.from(
        `id: 1\nevent: command\ndata: ${JSON.stringify({
          id: 'in-pieces',
          type: 'message',
          sessionId: stage.sessionId,
          createdAt: Date.now(),
          expiresAt: Date.now() + 600_000,
          body: { messageId: 'in-pieces', text: said, from: { kind: 'person', id: 'operator' } },
          fromTheFuture: { x: 1 },
        })}\n\n`,
      );
      // The cuts are within characters.
      const cut = bytes.indexOf('ü') + 1;
      const pieces = [bytes.subarray(0, 9), bytes.subarray(9, cut), bytes.subarray(cut)];
      await stage.fake.commands.sayInPieces(pieces, PIECES_MS);
      const turn = await stage.answered({ id: 'in-pieces' });
      agree('the turn', saidIn(turn), [said.slice(4)], 'Decode the stream as a whole, and read it line by line.');
    },
  },
  {
    group: 'commands',
    name: 'a stream that ends or breaks is opened again, and what was asked meanwhile is done once',
    why: WHY,
    async run(stage) {
      await stage.running();
      for (const end of ['bye', 'break']) {
        const count = stage.fake.commands.streamed.length;
        stage.fake.commands.endStreams(end === 'bye' ? 'event: bye\ndata: {"reason":"planned"}\n\n' : 'event: comm');
        const message = stage.fake.commands.message(stage.sessionId, `say after the ${end}`);
        agree('the turn', saidIn(await stage.answered(message)), [`after the ${end}`], 'Take what is open.');
        hold(stage.fake.commands.streamed.length > count, 'a new stream', 'none', 'Open the stream again.');
        agree('how often the agent got it', gotIt(stage, message.id).length, 1, 'Take each command once.');
      }
    },
  },
  {
    group: 'commands',
    name: 'an interrupt that was meant for another turn is refused, and the turn that runs goes on',
    why: '7, Interrupts',
    async run(stage) {
      await stage.takes('interrupt');
      const { id } = await stage.begun('hang');
      const wrong = stage.fake.commands.ask('interrupt', stage.sessionId, { turnId: `${id}-before` });
      await stage.acked(wrong, ['failed']);
      const open = stage.turns.find((turn) => turn.id === id)?.state;
      agree('the turn', open, 'open', 'Compare turnId with the turn that runs.');
      await stage.acked(stage.fake.commands.ask('interrupt', stage.sessionId, { turnId: id }), ['done']);
    },
  },
  {
    group: 'commands',
    name: 'what its status record says it does not take it refuses with that reason',
    why: WHY,
    async run(stage) {
      await stage.running();
      const { takes, takesNot } = stage.status;
      const refused = Object.entries(fieldsOf(takesNot));
      for (const [type, why] of refused) {
        const { reason } = await stage.acked(stage.fake.commands.ask(type, stage.sessionId, {}), ['failed']);
        agree(`the reason of ${type}`, reason, textOf(why), 'Give the reason that takesNot gives.');
      }
      const isSaid = !Array.isArray(takes) || refused.length > 0 || takes.length >= 8;
      hold(isSaid, 'takesNot beside takes', takesNot, 'Say in takesNot why you do not take the others.');
    },
  },
  {
    group: 'commands',
    name: 'a message that carries what its status record does not take is refused, and the agent does not get it',
    why: '7, Attachments, 5',
    async run(stage) {
      await stage.running();
      const taken = supportedAttachments(stage.status);
      const untaken = CARRIED.find(({ mediaType }) => !taken.includes(attachmentKind(mediaType)));
      if (untaken === undefined) throw new NotDone('its status record says that it takes images and files');
      const text = 'say it came without its file';
      const body = { messageId: 'with-a-file', text, from: { kind: 'person', id: 'operator' }, attachments: [untaken] };
      const message = stage.fake.commands.ask('message', stage.sessionId, body);
      const { reason } = await stage.acked(message, ['failed']);
      hold(textOf(reason) !== null, 'a reason', reason, 'Say that the agent takes no such attachments.');
      agree('how often the agent got it', gotIt(stage, message.id).length, 0, 'Give it no message without its files.');
    },
  },
  {
    group: 'commands',
    name: 'a runner that has been fenced neither comes back nor acknowledges',
    why: WHY,
    async run(stage) {
      await stage.running();
      const isAllSaid = () => stage.fake.commands.isAllAcknowledged;
      await stage
        .until('every acknowledgement', isAllSaid, 'Send them.', { withinMs: UNDER_WAY_MS })
        .catch(() => undefined);
      const [streams, acks] = [stage.fake.commands.streamed.length, stage.fake.commands.acks.length];
      stage.fake.commands.fence();
      await new Promise((resolve) => setTimeout(resolve, COMES_BACK_MS));
      const todo = 'End for good when a `fenced` comes: another runner has this agent.';
      agree('its later streams', stage.fake.commands.streamed.slice(streams), [], todo);
      agree('its later acknowledgements', stage.fake.commands.acks.slice(acks), [], todo);
      await stage.kill9();
      await stage.obey('say I am the next one');
      const [before, now] = stage.fake.commands.streamed.slice(-2);
      const isLater = (now?.startedAt ?? 0) > (before?.startedAt ?? 0) && now?.runner !== before?.runner;
      hold(isLater, 'a later startedAt and another id', [before, now], 'Take both anew in each process.');
    },
  },
];
