import { agree, type Check } from '../check';
import { custom, finished, itemsOf, started, text } from './played-agent';
import type { ServerStage } from './server-stage';
import type { SeenFrame } from './sse-reader';

const WHY = '7, Commands';
const isCommand = ({ event }: SeenFrame) => event === 'command';
const isCaughtUp = ({ event }: SeenFrame) => event === 'up-to-date';

/** How far a message has come, as its item shows it. */
async function deliveryOf(agent: { turns(): Promise<Record<string, unknown>[]> }, messageId: string) {
  const items = (await agent.turns()).flatMap((turn) => turn.items as Record<string, unknown>[]);
  return items.find(({ id }) => id === messageId)?.delivery;
}

export const COMMANDS: readonly Check<ServerStage>[] = [
  {
    group: 'commands',
    name: 'a runner’s stream says hello, then what is open, in order, then that this is all',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('stream');
      await agent.tell(custom('x', {}));
      for (const at of [1, 2]) {
        await stage.ask(`${agent.path}/messages`, { text: `${at}`, clientId: `c${at}` }, { status: 202 });
      }
      const stream = await agent.listen();
      const todo = 'Begin with hello, send what is open in the order it was queued, and then up-to-date.';
      await stream.frame('up-to-date', isCaughtUp, todo);
      stream.close();
      const seen = stream.frames.map(({ event, data }) => [event, (data.body as { text?: string })?.text ?? null]);
      const expected = [
        ['hello', null],
        ['command', '1'],
        ['command', '2'],
        ['up-to-date', null],
      ];
      agree('the frames', seen, expected, todo);
    },
  },
  {
    group: 'commands',
    name: 'a message is queued, delivered once its runner says so, and seen once a turn names it',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('message');
      await agent.tell(custom('x', {}));
      const stream = await agent.listen();
      const body = { text: 'hello', clientId: 'c1' };
      const answer = await stage.ask(`${agent.path}/messages`, body, { status: 202, delivery: 'queued' });
      const id = String(answer.messageId);
      const todo = 'Show each step of the delivery in the transcript.';
      agree('its delivery', await deliveryOf(agent, id), 'queued', todo);
      const { data } = await stream.frame('the command', isCommand, 'Send it to the runner that listens.');
      agree('the command', data, { id, type: 'message', body: { messageId: id, text: 'hello' } }, todo);
      await agent.acknowledge(id, 'delivered');
      agree('its delivery', await deliveryOf(agent, id), 'delivered', todo);
      const named = { userMessageIds: [id] };
      await agent.tell(started('r1', { turn: 'user', ...named }), ...text('m1', 'hi'), finished('r1', named));
      agree('its delivery', await deliveryOf(agent, id), 'seen', todo);
      const items = ['message hello', 'message hi'];
      agree('the turn', (await agent.turns()).map(itemsOf).at(-1), items, 'Let the turn claim its message.');
      stream.close();
    },
  },
  {
    group: 'commands',
    name: 'the same clientId gets the same answer and sends one command, and another text under it is a conflict',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('client-id');
      await agent.tell(custom('x', {}));
      const body = { text: 'once', clientId: 'c1' };
      const path = `${agent.path}/messages`;
      const { messageId } = await stage.ask(path, body, { status: 202 });
      await stage.ask(path, body, { status: 202, messageId });
      const refusal = { status: 409, error: { code: 'conflict', reason: 'client_id_reused' } };
      await stage.ask(path, { ...body, text: 'twice' }, refusal);
      const stream = await agent.listen();
      await stream.frame('up-to-date', isCaughtUp, 'Send up-to-date.');
      stream.close();
      const ids = stream.named('command').map(({ data }) => data.id);
      agree('the commands', ids, [messageId], 'Queue one command for each clientId.');
    },
  },
  {
    group: 'commands',
    name: 'an acknowledgement may be repeated, and an end stays',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('ack');
      await agent.tell(started('r1'));
      const body = { turnId: 'r1', clientId: 'c1' };
      const { commandId } = await stage.ask(`${agent.path}/interrupt`, body, { status: 202 });
      const id = String(commandId);
      const todo = 'Answer 200 with the state in which the command stands.';
      for (const said of ['done', 'done', 'failed']) {
        const { status, body: answer } = await agent.acknowledge(id, said, said === 'failed' ? { reason: 'no' } : {});
        agree(`the answer to ${said}`, { status, ...answer }, { status: 200, commandId: id, state: 'done' }, todo);
      }
    },
  },
  {
    group: 'commands',
    name: 'what was not acknowledged comes again to the next stream, under the same id, and then no more',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('again-sent');
      await agent.tell(started('r1'));
      const first = await agent.listen();
      const body = { turnId: 'r1', clientId: 'c1' };
      const { commandId } = await stage.ask(`${agent.path}/interrupt`, body, { status: 202 });
      await first.frame('the command', isCommand, 'Send it.');
      first.close();
      const second = await agent.listen();
      const todo = 'Send everything that is open to a stream that begins nowhere.';
      const { data } = await second.frame('the command again', isCommand, todo);
      agree('the command', data, { id: commandId }, todo);
      await agent.acknowledge(String(commandId), 'done');
      second.close();
      const third = await agent.listen();
      await third.frame('up-to-date', isCaughtUp, 'Send up-to-date.');
      agree('what a third stream has', third.named('command').length, 0, 'Send nothing that has its end.');
      third.close();
    },
  },
  {
    group: 'commands',
    name: 'an interrupt of a turn that is over is refused, and says which one is open',
    why: '7, Interrupts',
    async run(stage) {
      const agent = stage.agent('interrupt');
      await agent.tell(started('r1'), finished('r1'), started('r2'));
      const refusal = { status: 409, error: { code: 'conflict', reason: 'turn_ended', openTurnId: 'r2' } };
      await stage.ask(`${agent.path}/interrupt`, { turnId: 'r1', clientId: 'c1' }, refusal);
      await stage.ask(`${agent.path}/interrupt`, { turnId: 'r2', clientId: 'c2' }, { status: 202 });
    },
  },
  {
    group: 'commands',
    name: 'of two runners of one agent the one that started later wins, and the other is told',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('fenced');
      await agent.tell(custom('x', {}));
      const first = await agent.listen();
      await first.frame('hello', ({ event }) => event === 'hello', 'Send hello.');
      const later = { id: `${agent.id}/later`, startedAt: agent.runner.startedAt + 1 };
      const second = await agent.listen(later);
      const todo = 'End the older stream with `fenced`, which names the newer runner.';
      const { data } = await first.frame('fenced', ({ event }) => event === 'fenced', todo);
      agree('the frame', data, { runnerId: later.id, startedAt: later.startedAt }, todo);
      await stage.ask(`${agent.path}/messages`, { text: 'x', clientId: 'c1' }, { status: 202 });
      const { data: command } = await second.frame('the command', isCommand, 'Send it to the newer one.');
      const refused = await agent.acknowledge(String(command.id), 'delivered');
      const stale = { status: 403, error: { code: 'stale_epoch' } };
      agree(
        'the answer to the older',
        { status: refused.status, ...refused.body },
        stale,
        'Fence its acknowledgements.',
      );
      second.close();
    },
  },
];
