import { randomBytes } from 'node:crypto';
import { CUSTOM } from '@interlude/protocol/ag-ui';
import type { SessionFacts, Source, SourceContext } from '../host/source';
import { play } from '../replay/player';
import type { Recording } from '../replay/recording';
import { type DemoAgent, restAfter } from './fleet';
import type { Rota } from './rota';

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
  surroundings: SourceContext;
  agent: DemoAgent;
  recordings: Recording[];
  /** Shared by all agents of the demo. */
  rota: Rota;
  speed: number;
}

const CURSOR = 'demo';

export class DemoSource implements Source {
  readonly #options: DemoSourceOptions;
  readonly #around: SourceContext;
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
