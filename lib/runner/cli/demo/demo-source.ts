import { randomBytes } from 'node:crypto';
import { CUSTOM } from '@interlude/protocol/ag-ui';
import type { SessionFacts, Source, SourceSurroundings } from '../../host/source';
import { play, type Recording, until } from '../recording';

/**
 * One agent of the demo: it plays one recording after another, each as a new session. Its log level can be changed; a
 * recording can do nothing else that people ask for, and says so.
 *
 * Ordering: where the first recording begins in its middle, what lies before has the times it would have had, in the
 * log as in the session.
 * Failure: the running session is noted in the outbox. When the demo is stopped, or starts again after a kill, that
 * session is told that its agent has ended; otherwise it would look busy for ever.
 */
export interface DemoSourceOptions {
  surroundings: SourceSurroundings;
  agent: DemoAgent;
  recordings: Recording[];
  /** Shared by all agents of the demo. */
  rota: Rota;
  speed: number;
}

const CURSOR = 'demo';

export class DemoSource implements Source {
  readonly #options: DemoSourceOptions;
  readonly #around: SourceSurroundings;
  readonly #stopped = new AbortController();
  #playing: Promise<void> = Promise.resolve();
  /** The session that is played. */
  #sessionId: string | null = null;

  readonly refusals = {
    message: 'this agent replays a recording, and nobody reads messages to it',
    interrupt: 'this agent replays a recording, and its turns end where they ended then',
    'session.end': 'this agent replays a recording, and its sessions end as they ended then',
    'task.stop': 'this agent replays a recording, and its tasks end as they ended then',
    'task.wake': 'this agent replays a recording, and wakes where it woke then',
    'wake-rule.set': 'this agent replays a recording, and wakes where it woke then',
    'permission.decision': 'this agent replays a recording, and goes on as it was told then',
    'question.answer': 'this agent replays a recording, and goes on as it was told then',
  };

  constructor(options: DemoSourceOptions) {
    this.#options = options;
    this.#around = options.surroundings;
  }

  get sessions(): SessionFacts[] {
    return this.#sessionId === null ? [] : [{ sessionId: this.#sessionId, attachments: [] }];
  }

  async start(): Promise<void> {
    const left = (await this.#around.cursors(CURSOR)).get(CURSOR);
    if (left) this.#leave(left);
    this.#playing = this.#playOn().catch((error) => this.#around.gaveUp(String(error)));
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#playing;
    const left = this.#sessionId;
    this.#sessionId = null;
    if (left !== null) this.#leave(left);
  }

  /** Session after session, until it is closed. */
  async #playOn(): Promise<void> {
    const { agent, recordings, rota, speed } = this.#options;
    const { signal } = this.#stopped;
    for (let round = 0; !signal.aborted; round += 1) {
      const recording = recordings[round % recordings.length] as Recording;
      const sessionId = `${agent.agentId}-${randomBytes(4).toString('hex')}`;
      const skipToMs = round === 0 ? agent.beginsAtMs : 0;
      const at = Math.round(Date.now() - skipToMs / speed);
      this.#sessionId = sessionId;
      const from = skipToMs === 0 ? '' : `, from ${skipToMs / 1_000} s into it`;
      const how = speed === 1 ? '' : `, at ${speed} times its speed`;
      this.#around.log('info', `plays the recording ${recording.name} as session ${sessionId}${from}${how}`, { at });
      await this.#around.opened(sessionId, at, [{ name: CURSOR, value: sessionId }]);
      const played = await play({
        recording,
        sessionId,
        fromLine: 0,
        speed,
        skipToMs,
        signal,
        emit: (events, line) => {
          const value = line === recording.lines.length ? '' : sessionId;
          return this.#around.emit(sessionId, events, [{ name: CURSOR, value }]);
        },
      });
      if (!played) return;
      this.#sessionId = null;
      const restMs = restAfter(agent, round) / speed;
      const rest = `${Number((restMs / 1_000).toFixed(1))} s`;
      this.#around.log(
        'info',
        `the recording ${recording.name} has ended; the next one begins in ${rest} at the latest`,
      );
      await rota.rest(restMs, signal);
    }
  }

  #leave(sessionId: string): void {
    const event = { type: 'CUSTOM', name: CUSTOM.sessionEnded, value: { reason: 'the demo was stopped' } };
    this.#around.log('info', `ends session ${sessionId} before its recording has`);
    void this.#around.emit(sessionId, [{ occurredAt: Date.now(), event }], [{ name: CURSOR, value: '' }]);
  }
}

/** The agents of the demo. Each plays its recordings in turn, every time as a new session. */
export interface DemoAgent {
  agentId: string;
  /** Names of recordings; played from the first to the last and over again. */
  recordings: readonly string[];
  /** How far into its first recording the agent is when the demo starts, in ms. */
  beginsAtMs: number;
  /** How long it rests after each of its first sessions, in ms. */
  restMs: number;
}

/** An agent's first sessions follow each other quickly: whoever has just opened the demo sees a lot happen. */
const LIVELY_SESSIONS = 2;
/** From then on each rests longer by this, so that a demo left alone does not fill the lists. */
const LATER_REST_MS = 18_000;

/** @param round how many sessions the agent has had before the one it rests from */
export function restAfter(agent: DemoAgent, round: number): number {
  return round < LIVELY_SESSIONS ? agent.restMs : agent.restMs + LATER_REST_MS;
}

/**
 * The beginnings are chosen so that in the first ten seconds several background tasks end and their agents wake up by
 * themselves, at different moments, while others still work towards it.
 */
export const FLEET: readonly DemoAgent[] = [
  { agentId: 'checkout-service', recordings: ['test-run', 'folded', 'permission'], beginsAtMs: 7_500, restMs: 9_000 },
  { agentId: 'release-train', recordings: ['deploy-watch', 'long-build'], beginsAtMs: 7_500, restMs: 12_000 },
  { agentId: 'market-research', recordings: ['research', 'triple'], beginsAtMs: 5_000, restMs: 10_000 },
  { agentId: 'android-app', recordings: ['long-build', 'interrupted'], beginsAtMs: 0, restMs: 8_000 },
  { agentId: 'data-pipeline', recordings: ['permission', 'failure'], beginsAtMs: 0, restMs: 11_000 },
  { agentId: 'web-frontend', recordings: ['message-while-waking', 'test-run'], beginsAtMs: 0, restMs: 7_000 },
  { agentId: 'infra-terraform', recordings: ['triple', 'deploy-watch', 'resume'], beginsAtMs: 2_000, restMs: 13_000 },
];

/**
 * Which agents of the demo rest. Each rests for its own time, but never so many at once that none is seen at work.
 *
 * Ordering: who has rested longest is called back first.
 */
export class Rota {
  readonly #agents: number;
  readonly #leastAtWork: number;
  readonly #resting: AbortController[] = [];

  constructor(agents: number, leastAtWork: number) {
    this.#agents = agents;
    this.#leastAtWork = leastAtWork;
  }

  /** Ends after `ms`, or earlier: with `signal`, or when too many rest. */
  async rest(ms: number, signal: AbortSignal): Promise<void> {
    const call = new AbortController();
    this.#resting.push(call);
    if (this.#agents - this.#resting.length < this.#leastAtWork) this.#resting.shift()?.abort();
    await until(Date.now() + ms, AbortSignal.any([signal, call.signal]));
    const place = this.#resting.indexOf(call);
    if (place >= 0) this.#resting.splice(place, 1);
  }
}
