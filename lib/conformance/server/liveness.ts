import { HEARTBEAT_MS } from '@interlude/protocol/limits';
import { agree, type Check } from '../check';
import { custom, finished, started } from './played-agent';
import type { ServerStage } from './server-stage';

const WHY = '7, Commands, 9';
/** A runner that is away for so long is missed, and nothing of it says that it works. */
const MISSED_MS = 30_000;
const SLACK_MS = 5_000;

export const LIVENESS: readonly Check<ServerStage>[] = [
  {
    group: 'liveness',
    name: 'a runner that has promised a record and sends none is away, and its stream ends with bye',
    why: WHY,
    isSlow: true,
    async run(stage) {
      const agent = stage.agent('promise');
      const { id, startedAt } = agent.runner;
      await agent.outbox.send(agent.status({ kind: 'conformance', everyMs: 500, runner: { id, startedAt, pid: 1 } }));
      const stream = await agent.listen();
      const todo = 'End the stream with bye (slow) at two missed promises, and say that the agent is away.';
      const { data } = await stream.frame('bye', ({ event }) => event === 'bye', todo, MISSED_MS);
      agree('bye', data, { reason: 'slow' }, todo);
      const path = `/agents/${encodeURIComponent(agent.id)}`;
      const away = async () => ((await stage.read(path)).body.agent as { connection?: string }).connection === 'away';
      await stage.until('the agent to be away', away, todo);
    },
  },
  {
    group: 'liveness',
    name: 'nothing says working 30 s after a runner has gone in the middle of a turn',
    why: '7, Commands, 10 and 6, State',
    isSlow: true,
    async run(stage) {
      const agent = stage.agent('gone');
      const { id, startedAt } = agent.runner;
      await agent.outbox.send(
        agent.status({ kind: 'conformance', everyMs: 60_000, runner: { id, startedAt, pid: 1 } }),
        agent.event(started('r1')),
      );
      const stream = await agent.listen();
      await stream.frame('hello', ({ event }) => event === 'hello', 'Send hello.');
      agree('its state', await agent.session(), { state: 'working' }, 'Say that it works while it does.');
      stream.close();
      let seen: unknown = null;
      const isMissed = async () => {
        const session = await agent.session();
        seen = { state: session.state, away: session.away };
        return session.state === 'unknown' && session.away !== null;
      };
      const todo = 'Miss a runner whose stream has ended for 12 s, and say since when nothing is heard.';
      await stage.until('the session to be unknown', isMissed, todo, { seen: () => seen, withinMs: MISSED_MS });
      await agent.tell(finished('r1'), custom('session:ended', { reason: 'over', exitCode: 0 }));
    },
  },
  {
    group: 'liveness',
    name: 'a stream that has nothing to say says so every 15 s',
    why: '5, Live',
    isSlow: true,
    async run(stage) {
      const stream = await stage.stream(`/stream?topic=${encodeURIComponent(`session:${stage.prefix}-silent`)}`);
      const beats = () => stream.heartbeats > 0;
      const todo = 'Send the comment `: hb` every 15 s while nothing else is sent.';
      await stage.until('a heartbeat', beats, todo, { withinMs: HEARTBEAT_MS + SLACK_MS });
      stream.close();
    },
  },
  {
    group: 'liveness',
    name: 'a state names its evidence, and the word of the agent about its own end stays',
    why: '6, State',
    async run(stage) {
      const agent = stage.agent('evidence');
      const report = { state: 'complete', summary: 'all is done', at: Date.now() };
      await agent.outbox.send(
        agent.event(started('r1')),
        agent.event(finished('r1')),
        agent.status({ kind: 'conformance', openTurnId: null, report }),
      );
      const session = await stage.until(
        'the session to be complete',
        async () => {
          const seen = await agent.session();
          return seen.state === 'complete' ? seen : null;
        },
        'Let the agent’s own report decide once it is still.',
        { seen: async () => (await agent.session()).state },
      );
      agree(
        'its evidence',
        session.evidence,
        { source: 'report', report: { state: 'complete' } },
        'Name the evidence.',
      );
      await agent.tell(custom('interlude:notice', { text: 'something else' }));
      agree('its state', (await agent.session()).state, 'complete', 'Overwrite no report without evidence.');
    },
  },
];
