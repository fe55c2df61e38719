import type { Fields } from '@interlude/protocol/fields';
import { HEARTBEAT_MS } from '@interlude/protocol/limits';
import { LOG_LEVELS } from '@interlude/protocol/vocabulary';

import { assertMatch } from '../check';
import { custom, type FakeAgent, finished, itemsOf, serverChecks, started, text } from './server-target';

async function deliveryOf(agent: FakeAgent, messageId: string): Promise<unknown> {
  const items = (await agent.turns()).flatMap((turn) => turn.items as Fields[]);
  return items.find(({ id }) => id === messageId)?.delivery;
}

export const COMMANDS = serverChecks('commands', '7, Commands', {
  'a command stream sends hello, the open commands in order, and up-to-date': {
    todo: 'Send hello, then the open commands in the order they were queued, then up-to-date.',
    async run({ agent, server }) {
      await agent.emit(custom('x'));
      for (const at of [1, 2]) {
        await server.expect(`${agent.path}/messages`, { text: `${at}`, clientId: `c${at}` }, { status: 202 });
      }
      const stream = await agent.commands();
      await stream.frame('up-to-date');
      stream.close();
      const seen = stream.frames.map(({ event, data }) => [event, (data.body as { text?: string })?.text ?? null]);
      const expected = [
        ['hello', null],
        ['command', '1'],
        ['command', '2'],
        ['up-to-date', null],
      ];
      assertMatch('the frames', seen, expected);
    },
  },
  'a message is queued, then delivered when acknowledged, then seen when a turn names it': {
    todo: 'Show each step of the delivery in the transcript.',
    async run({ agent, server }) {
      await agent.emit(custom('x'));
      const stream = await agent.commands();
      const body = { text: 'hello', clientId: 'c1' };
      const response = await server.expect(`${agent.path}/messages`, body, { status: 202, delivery: 'queued' });
      const id = String(response.messageId);
      assertMatch('its delivery', await deliveryOf(agent, id), 'queued');
      const { data } = await stream.frame('command', { todo: 'Send it to the connected runner.' });
      assertMatch('the command', data, { id, type: 'message', body: { messageId: id, text: 'hello' } });
      await agent.acknowledge(id, 'delivered');
      assertMatch('its delivery', await deliveryOf(agent, id), 'delivered');
      const named = { userMessageIds: [id] };
      await agent.emit(started('r1', { turn: 'user', ...named }), ...text('m1', 'hi'), finished('r1', named));
      assertMatch('its delivery', await deliveryOf(agent, id), 'seen');
      const items = ['message hello', 'message hi'];
      assertMatch('the turn', (await agent.turns()).map(itemsOf).at(-1), items, 'Move the message into its turn.');
      stream.close();
    },
  },
  'a repeated clientId gets the same response and one command, and another text is a conflict': {
    todo: 'Queue one command per clientId.',
    async run({ agent, server }) {
      await agent.emit(custom('x'));
      const body = { text: 'once', clientId: 'c1' };
      const path = `${agent.path}/messages`;
      const { messageId } = await server.expect(path, body, { status: 202 });
      await server.expect(path, body, { status: 202, messageId });
      const refusal = { status: 409, error: { code: 'conflict', reason: 'client_id_reused' } };
      await server.expect(path, { ...body, text: 'twice' }, refusal);
      const stream = await agent.commands();
      await stream.frame('up-to-date');
      stream.close();
      const ids = stream.named('command').map(({ data }) => data.id);
      assertMatch('the commands', ids, [messageId]);
    },
  },
  'a repeated acknowledgement is accepted, and the final state stays': {
    todo: 'Respond 200 with the current state of the command.',
    async run({ agent, server }) {
      await agent.emit(started('r1'));
      const body = { turnId: 'r1', clientId: 'c1' };
      const { commandId } = await server.expect(`${agent.path}/interrupt`, body, { status: 202 });
      for (const [state, more] of [['done'], ['done'], ['failed', { reason: 'no' }]] as const) {
        const { seen } = await agent.acknowledge(String(commandId), state, more);
        assertMatch(`the response to ${state}`, seen, { status: 200, commandId, state: 'done' });
      }
    },
  },
  'an unacknowledged command is repeated on the next stream under its id, and not afterwards': {
    todo: 'Send a new stream every open command, and none that has ended.',
    async run({ agent, server }) {
      await agent.emit(started('r1'));
      const first = await agent.commands();
      const body = { turnId: 'r1', clientId: 'c1' };
      const { commandId } = await server.expect(`${agent.path}/interrupt`, body, { status: 202 });
      await first.frame('command');
      first.close();
      const second = await agent.commands();
      const { data } = await second.frame('command');
      assertMatch('the repeated command', data, { id: commandId });
      await agent.acknowledge(String(commandId), 'done');
      second.close();
      const third = await agent.commands();
      await third.frame('up-to-date');
      assertMatch('the commands on a third stream', third.named('command').length, 0);
      third.close();
    },
  },
  'an interrupt of an ended turn is refused and names the open turn': {
    why: '7, Interrupts',
    todo: 'Refuse it with openTurnId.',
    async run({ agent, server }) {
      await agent.emit(started('r1'), finished('r1'), started('r2'));
      const refusal = { status: 409, error: { code: 'conflict', reason: 'turn_ended', openTurnId: 'r2' } };
      await server.expect(`${agent.path}/interrupt`, { turnId: 'r1', clientId: 'c1' }, refusal);
      await server.expect(`${agent.path}/interrupt`, { turnId: 'r2', clientId: 'c2' }, { status: 202 });
    },
  },
  'the later of two runners of an agent wins, and the other is notified': {
    todo: 'End the older stream with `fenced`, which names the newer runner, and refuse its acknowledgements.',
    async run({ agent, server }) {
      await agent.emit(custom('x'));
      const first = await agent.commands();
      await first.frame('hello');
      const later = { id: `${agent.id}/later`, startedAt: agent.runner.startedAt + 1 };
      const second = await agent.commands(later);
      const { data } = await first.frame('fenced');
      assertMatch('the frame', data, { runnerId: later.id, startedAt: later.startedAt });
      await server.expect(`${agent.path}/messages`, { text: 'x', clientId: 'c1' }, { status: 202 });
      const { data: command } = await second.frame('command', { todo: 'Send it to the newer runner.' });
      const { seen } = await agent.acknowledge(String(command.id), 'delivered');
      assertMatch('the response to the older runner', seen, { status: 403, error: { code: 'stale_epoch' } });
      second.close();
    },
  },
});

/** A runner that is away for this long counts as missed, and its session as unknown. */
const MISSED_MS = 30_000;
const SLACK_MS = 5_000;

export const LIVENESS = serverChecks('liveness', '7, Commands, 9', {
  'a runner that misses its reports is away, and its stream ends with bye': {
    todo: 'After two missed reports, end the stream with bye (slow) and show the agent as away.',
    isSlow: true,
    async run({ agent, server }) {
      await agent.outbox.send(agent.status({ everyMs: 500, runner: { ...agent.runner, pid: 1 } }));
      const stream = await agent.commands();
      const { data } = await stream.frame('bye', { timeoutMs: MISSED_MS });
      assertMatch('bye', data, { reason: 'slow' });
      const path = `/agents/${encodeURIComponent(agent.id)}`;
      const isAway = async () => ((await server.read(path)).agent as { connection?: string }).connection === 'away';
      await server.waitFor('the agent to be away', isAway);
    },
  },
  'no session is shown as working 30 s after its runner is gone': {
    why: '7, Commands, 10 and 6, State',
    todo: 'Treat a runner whose stream ended 12 s ago as away, and show since when.',
    isSlow: true,
    async run({ agent, server }) {
      const status = agent.status({ everyMs: 60_000, runner: { ...agent.runner, pid: 1 } });
      await agent.outbox.send(status, agent.event(started('r1')));
      const stream = await agent.commands();
      await stream.frame('hello');
      assertMatch('its state', await agent.session(), { state: 'working' }, 'Show it as working until then.');
      stream.close();
      let seen: Fields = {};
      const isUnknown = async () => {
        const { state, away } = await agent.session();
        seen = { state, away };
        return state === 'unknown' && away !== null;
      };
      await server.waitFor('the session to be unknown', isUnknown, { seen: () => seen, timeoutMs: MISSED_MS });
      await agent.emit(finished('r1'), custom('session:ended', { reason: 'over', exitCode: 0 }));
    },
  },
  'an idle stream sends a heartbeat every 15 s': {
    why: '5, Live',
    todo: 'Send the comment `: hb` every 15 s while idle.',
    isSlow: true,
    async run({ server }) {
      const stream = await server.stream(`/stream?topic=${encodeURIComponent(`session:${server.prefix}-silent`)}`);
      await server.waitFor('a heartbeat', () => stream.heartbeats > 0, { timeoutMs: HEARTBEAT_MS + SLACK_MS });
      stream.close();
    },
  },
  'a state names its evidence, and a final report of the agent stays': {
    why: '6, State',
    todo: 'Let the agent’s own report decide once the agent is idle, name it as the evidence, and keep it.',
    async run({ agent, server }) {
      const report = { state: 'complete', summary: 'all is done', at: Date.now() };
      await agent.outbox.send(
        agent.event(started('r1')),
        agent.event(finished('r1')),
        agent.status({ openTurnId: null, report }),
      );
      let session: Fields = {};
      const isComplete = async () => {
        session = await agent.session();
        return session.state === 'complete';
      };
      await server.waitFor('the session to be complete', isComplete, { seen: () => session.state });
      assertMatch('its evidence', session.evidence, { source: 'report', report: { state: 'complete' } });
      await agent.emit(custom('interlude:notice', { text: 'something else' }));
      assertMatch('its state', (await agent.session()).state, 'complete');
    },
  },
});

const logLevelPath = (agent: FakeAgent) => `/agents/${encodeURIComponent(agent.id)}/log-level`;

export const LOG_LEVEL = serverChecks('log level', '7, The log level of a runner', {
  'a log level is requested, then confirmed, then shown when the status record has it': {
    todo: 'Show what is requested, what is confirmed, and as `level` only what the status record reports.',
    async run({ agent, server }) {
      const path = logLevelPath(agent);
      await agent.outbox.send(agent.status({ logLevel: 'info' }));
      const stream = await agent.commands();
      await server.expect(path, { level: 'debug', ttlSeconds: 600 }, { status: 202 }, 'PUT');
      assertMatch('the log level', await server.read(path), { desired: { level: 'debug', state: 'requested' } });
      const { data } = await stream.frame('log-level.set', {
        matches: (frame) => frame.data.type === 'log-level.set',
        todo: 'Send log-level.set with level, ttlSeconds and requestId.',
      });
      assertMatch('the command', data.body, { level: 'debug' });
      await agent.acknowledge(String(data.id), 'done');
      const confirmed = { level: 'info', desired: { level: 'debug', state: 'confirmed' } };
      assertMatch('the log level', await server.read(path), confirmed);
      const logSwitch = { by: 'operator', until: Date.now() + 600_000, base: 'info' };
      await agent.outbox.send(agent.status({ logLevel: 'debug', logSwitch }));
      assertMatch('the log level', await server.read(path), { level: 'debug' });
      stream.close();
    },
  },
  'a log-level request expires, and an unconfirmed one is replaced by the default': {
    todo: 'Expire the request by the server’s clock, and ask the runner for its default.',
    async run({ agent, server }) {
      await agent.emit(custom('x'));
      const stream = await agent.commands();
      await server.expect(logLevelPath(agent), { level: 'debug', ttlSeconds: 1 }, { status: 202 }, 'PUT');
      const { data } = await stream.frame('log-level.set with level null', {
        matches: (frame) => frame.data.type === 'log-level.set' && (frame.data.body as Fields).level === null,
      });
      await agent.acknowledge(String(data.id), 'done');
      const { desired = null } = await server.read(logLevelPath(agent));
      assertMatch('the desired level', desired, null, 'Clear the request once the runner confirms its default.');
      stream.close();
    },
  },
  'an unknown log level is refused with the list of levels': {
    todo: 'List the levels in the error.',
    async run({ agent, server }) {
      await agent.emit(custom('x'));
      const refusal = { status: 400, error: { code: 'invalid_argument', levels: [...LOG_LEVELS] } };
      await server.expect(logLevelPath(agent), { level: 'loud' }, refusal, 'PUT');
    },
  },
});
