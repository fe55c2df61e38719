import { connect, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import { API_BASE } from '@interlude/protocol/version';
import { agree, type Check, hold } from '../check';
import { custom, type PlayedAgent } from './played-agent';
import type { ServerStage } from './server-stage';

const WHY = '8, Invariants, 12';
const READERS = 20;
/** Far more than a healthy server takes, and less than anybody would wait for: the checks run on busy machines too. */
const BOUND_MS = 5_000;
const BATCHES = 30;
const BATCH_TEXT = 'x'.repeat(40_000);

/** Connections that ask for a stream and never read it. */
async function deafReaders(stage: ServerStage, agent: PlayedAgent): Promise<Socket[]> {
  const { hostname, port, protocol, host } = new URL(stage.server.url);
  const secure = protocol === 'https:';
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || (secure ? 443 : 80)) };
  const path = `${API_BASE}/stream?topic=${encodeURIComponent(`session:${agent.sessionId}`)}&after=0`;
  const asked = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${stage.server.token}\r\n\r\n`;
  return await Promise.all(
    Array.from({ length: READERS }, async () => {
      const socket = secure ? connectSecurely({ ...place, servername: place.host }) : connect(place);
      socket.on('error', () => socket.destroy());
      socket.pause();
      await new Promise<void>((resolve) => socket.write(asked, () => resolve()));
      return socket;
    }),
  );
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const since = performance.now();
  await work();
  return Math.round(performance.now() - since);
}

export const NEVER_IN_THE_WAY: readonly Check<ServerStage>[] = [
  {
    group: 'never in the way',
    name: 'twenty readers who never read hold up neither records nor other readers',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('deaf');
      await agent.tell(custom('x', {}));
      const reader = await stage.stream(`/stream?topic=${encodeURIComponent(`session:${agent.sessionId}`)}`);
      const deaf = await deafReaders(stage, agent);
      try {
        let slowest = 0;
        for (let at = 1; at <= BATCHES; at += 1) {
          const tell = () => agent.tell(custom('conformance:filler', { at, filler: BATCH_TEXT }));
          slowest = Math.max(slowest, await timed(tell));
        }
        const todo = 'Let go of a reader that leaves its backlog unread; wait for none.';
        hold(slowest < BOUND_MS, `every request within ${BOUND_MS} ms`, `${slowest} ms`, todo);
        const heard = () => reader.named('session-event').length >= BATCHES;
        await stage.until('all of it at the one who reads', heard, todo);
        const alive = await timed(() => stage.send('/healthz'));
        hold(alive < BOUND_MS, `healthz within ${BOUND_MS} ms`, `${alive} ms`, todo);
      } finally {
        for (const socket of deaf) socket.destroy();
        reader.close();
      }
    },
  },
  {
    group: 'never in the way',
    name: 'the largest request that is taken holds up no other',
    why: WHY,
    async run(stage) {
      const [large, small] = [stage.agent('large'), stage.agent('small')];
      await small.tell(custom('x', {}));
      const line = 'x'.repeat(50_000);
      const records = Array.from({ length: Math.floor((MAX_REQUEST_BYTES * 0.9) / line.length) }, () =>
        large.event(custom('conformance:filler', { line })),
      );
      let isTaken = false;
      const taking = large.outbox.send(...records).finally(() => {
        isTaken = true;
      });
      let slowest = 0;
      while (!isTaken) slowest = Math.max(slowest, await timed(() => small.tell(custom('x', {}))));
      await taking;
      hold(slowest < BOUND_MS, `others within ${BOUND_MS} ms`, `${slowest} ms`, 'Give others their turn meanwhile.');
    },
  },
  {
    group: 'never in the way',
    name: 'what an agent owes is answered before its first word',
    why: '6, Read models',
    async run(stage) {
      const { body } = await stage.read(`/agents/${stage.prefix}-unheard/reply-obligations`);
      agree('what nobody owes', body, { obligations: [] }, 'Answer an empty list for an agent nobody knows.');
    },
  },
];
