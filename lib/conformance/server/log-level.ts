import type { Fields } from '@interlude/protocol/fields';
import { LOG_LEVELS } from '@interlude/protocol/record-vocabulary';
import { agree, type Check } from '../check';
import { custom, type PlayedAgent } from './played-agent';
import type { ServerStage } from './server-stage';

const WHY = '7, The log level of a runner';
const pathOf = (agent: PlayedAgent) => `/agents/${encodeURIComponent(agent.id)}/log-level`;

async function desired(stage: ServerStage, agent: PlayedAgent): Promise<Fields | null> {
  return ((await stage.read(pathOf(agent))).body.desired as Fields | null) ?? null;
}

export const LOG_LEVEL: readonly Check<ServerStage>[] = [
  {
    group: 'log level',
    name: 'a level is asked of the runner, confirmed by it, and shown once its status says so',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('level');
      await agent.outbox.send(agent.status({ kind: 'conformance', logLevel: 'info' }));
      const stream = await agent.listen();
      await stage.ask(pathOf(agent), { level: 'debug', ttlSeconds: 600 }, { status: 202 }, 'PUT');
      agree(
        'what is desired',
        await desired(stage, agent),
        { level: 'debug', state: 'requested' },
        'Say what is asked.',
      );
      const todo = 'Send log-level.set with level, ttlSeconds and requestId.';
      const { data } = await stream.frame('log-level.set', ({ data: { type } }) => type === 'log-level.set', todo);
      agree('the command', data.body, { level: 'debug' }, todo);
      await agent.acknowledge(String(data.id), 'done');
      const confirmed = { level: 'debug', state: 'confirmed' };
      agree('what is desired', await desired(stage, agent), confirmed, 'Confirm it with the acknowledgement.');
      const logSwitch = { by: 'operator', until: Date.now() + 600_000, base: 'info' };
      const seen = async () => (await stage.read(pathOf(agent))).body.level;
      agree('the level', await seen(), 'info', 'Show the level that the runner says it writes, no other.');
      await agent.outbox.send(agent.status({ kind: 'conformance', logLevel: 'debug', logSwitch }));
      agree('the level', await seen(), 'debug', 'Take it from the status record.');
      stream.close();
    },
  },
  {
    group: 'log level',
    name: 'a wish ends with its time, and a runner that never confirmed it is asked for its default',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('ttl');
      await agent.tell(custom('x', {}));
      const stream = await agent.listen();
      await stage.ask(pathOf(agent), { level: 'debug', ttlSeconds: 1 }, { status: 202 }, 'PUT');
      const todo = 'Withdraw the wish by the server’s own clock, and ask for the default.';
      const isDefault = ({ data }: { data: Fields }) =>
        data.type === 'log-level.set' && (data.body as Fields).level === null;
      const { data } = await stream.frame('log-level.set with level null', isDefault, todo);
      await agent.acknowledge(String(data.id), 'done');
      agree('what is desired', await desired(stage, agent), null, 'A confirmed default is no wish any more.');
      stream.close();
    },
  },
  {
    group: 'log level',
    name: 'a level that there is not is refused, and those that there are are listed',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('no-level');
      await agent.tell(custom('x', {}));
      const refusal = { status: 400, error: { code: 'invalid_argument', levels: [...LOG_LEVELS] } };
      await stage.ask(pathOf(agent), { level: 'loud' }, refusal, 'PUT');
    },
  },
];
