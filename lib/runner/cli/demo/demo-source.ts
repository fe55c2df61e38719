import { createHash, randomUUID } from 'node:crypto';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { isNothing } from '@interlude/protocol/lifecycle/open-session';
import type { SessionFacts, Source, SourceContext } from '../../host/source';
import { play, type Recording, sleepUntil } from '../recording';

export interface DemoSourceOptions {
  context: SourceContext;
  agent: DemoAgent;
  recordings: Recording[];
  /** Shared by all agents of the demo. */
  restLimiter: RestLimiter;
  speed: number;
}

/** Earlier versions played each recording as a session of its own, and stored the current one here. */
const CURSOR = 'demo';

/** The only session of an agent, in every run of the demo: a session per recording would fill the lists. */
export function demoSessionId(agentId: string): string {
  return `${agentId}-demo`;
}

/**
 * One agent of the demo: plays one recording after another in its session. Refuses every command except log-level.set.
 *
 * Ordering: if the first recording starts in the middle, earlier events and log lines carry the times at which they
 * would have occurred.
 * Failure: the session ends when the demo stops. After a kill, the next demo first closes its open work, and continues
 * the session.
 */
export class DemoSource implements Source {
  readonly #options: DemoSourceOptions;
  readonly #context: SourceContext;
  readonly #stopped = new AbortController();
  #running: Promise<void> = Promise.resolve();
  readonly #sessionId: string;
  #isOpen = false;

  readonly isRecorded = true;
  readonly refusals = {
    message: 'this agent replays a recording and can’t answer messages',
    interrupt: 'this agent replays a recording; its turns end as recorded',
    'session.end': 'this agent replays a recording; its sessions end as recorded',
    'task.stop': 'this agent replays a recording; its tasks end as recorded',
    'task.wake': 'this agent replays a recording; it wakes up as recorded',
    'wake-rule.set': 'this agent replays a recording; it wakes up as recorded',
    'permission.decision': 'this agent replays a recording; it continues as recorded',
    'question.answer': 'this agent replays a recording; it continues as recorded',
  };

  constructor(options: DemoSourceOptions) {
    this.#options = options;
    this.#context = options.context;
    this.#sessionId = demoSessionId(options.agent.agentId);
  }

  get sessions(): SessionFacts[] {
    return this.#isOpen ? [{ sessionId: this.#sessionId, attachments: [] }] : [];
  }

  async start(): Promise<void> {
    const earlier = (await this.#context.cursors(CURSOR)).get(CURSOR);
    if (earlier) this.#endSession(earlier);
    if (!isNothing(this.#context.openWork(this.#sessionId))) this.#endSession(this.#sessionId);
    this.#running = this.#run().catch((error) => this.#context.failRunner(String(error)));
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    if (this.#isOpen) this.#endSession(this.#sessionId);
    this.#isOpen = false;
  }

  /** Plays one recording after another until it is closed. */
  async #run(): Promise<void> {
    const { agent, recordings, restLimiter, speed } = this.#options;
    const sessionId = this.#sessionId;
    const { signal } = this.#stopped;
    for (let round = 0; !signal.aborted; round += 1) {
      const recording = recordings[round % recordings.length] as Recording;
      const skipToMs = round === 0 ? agent.beginsAtMs : 0;
      const at = Math.round(Date.now() - skipToMs / speed);
      const from = skipToMs === 0 ? '' : `, from ${skipToMs / 1_000} s into it`;
      const how = speed === 1 ? '' : `, at ${speed} times its speed`;
      this.#context.log('info', `playing recording ${recording.name} as session ${sessionId}${from}${how}`, { at });
      if (round === 0) await this.#context.announceSession(sessionId, at);
      this.#isOpen = true;
      const played = await play({
        recording: withNewIds(recording, randomUUID()),
        sessionId,
        fromLine: 0,
        speed,
        skipToMs,
        signal,
        emit: (events, line) => {
          const isLast = line === recording.lines.length;
          // Only the recording ends here, so the agent stays idle until the next one.
          const shown = events.filter(({ event }) => !isLast || event.name !== CUSTOM.sessionEnded);
          return this.#context.emit(sessionId, shown);
        },
      });
      if (!played) return;
      const restMs = restAfter(agent, round) / speed;
      const rest = `${Number((restMs / 1_000).toFixed(1))} s`;
      this.#context.log('info', `recording ${recording.name} ended; the next one starts within ${rest}`);
      await restLimiter.rest(restMs, signal);
    }
  }

  #endSession(sessionId: string): void {
    const reason = 'the demo was stopped';
    const { turn } = this.#context.openWork(sessionId);
    // Nothing will answer these messages, so they must not stay pending replies.
    const unanswered = (turn?.userMessageIds ?? []).map((id) => ({
      name: CUSTOM.messageDelivery,
      value: { message_id: id, delivery: 'failed', reason },
    }));
    const ends = [...unanswered, { name: CUSTOM.sessionEnded, value: { reason } }];
    this.#context.log('info', `ending session ${sessionId}`);
    void this.#context.emit(
      sessionId,
      ends.map((end) => ({ occurredAt: Date.now(), event: { type: 'CUSTOM', ...end } })),
      [{ name: CURSOR, value: '' }],
    );
  }
}

const ID_FIELD = /"(?:id|uuid|\w+(?:_id|_uuid|Id|ID))":"([\w-]{8,})"/g;

/**
 * The recording with other ids of the same form, because a session keeps each id for one message, call or task.
 * @param salt unique to the copy
 */
export function withNewIds(recording: Recording, salt: string): Recording {
  const texts = recording.lines.map(({ fields }) => JSON.stringify(fields));
  const ids = new Set(texts.flatMap((text) => [...text.matchAll(ID_FIELD)].map(([, id = '']) => id)));
  const anyId = new RegExp([...ids].sort((a, b) => b.length - a.length).join('|') || '(?!)', 'g');
  const lines = texts.map((text, index) => ({
    at: recording.lines[index]?.at ?? 0,
    fields: JSON.parse(text.replace(anyId, (id) => newIdFor(id, salt))) as Record<string, unknown>,
  }));
  return { ...recording, hash: `${recording.hash} ${salt}`, lines };
}

/** Keeps the length, separators and prefix: `toolu_`, or the first letter of a task. */
function newIdFor(id: string, salt: string): string {
  const digits = createHash('sha256').update(`${salt} ${id}`).digest('hex');
  return id.replace(/^(?:[a-z]+_|.)|[0-9A-Za-z]/g, (found, at: number) => (at === 0 ? found : (digits[at] ?? found)));
}

export interface DemoAgent {
  agentId: string;
  /** Names of recordings, played in turn. */
  recordings: readonly string[];
  /** Offset at which its first recording starts. */
  beginsAtMs: number;
  /** The pause after each of its first recordings. */
  restMs: number;
}

/** The first recordings of an agent follow each other quickly, for people who have just opened the demo. */
const LIVELY_ROUNDS = 2;
/** Added to later pauses, so that an unattended demo stays small. */
const LATER_REST_MS = 18_000;

/** @param round the number of earlier recordings */
export function restAfter(agent: DemoAgent, round: number): number {
  return round < LIVELY_ROUNDS ? agent.restMs : agent.restMs + LATER_REST_MS;
}

/**
 * The offsets make several background tasks end, and wake their agents, at different moments of the first ten seconds.
 */
export const FLEET: readonly DemoAgent[] = [
  { agentId: 'checkout-service', recordings: ['test-run', 'folded', 'permission'], beginsAtMs: 7_500, restMs: 9_000 },
  { agentId: 'release-train', recordings: ['deploy-watch', 'long-build'], beginsAtMs: 7_500, restMs: 12_000 },
  { agentId: 'market-research', recordings: ['research', 'triple'], beginsAtMs: 5_000, restMs: 10_000 },
  { agentId: 'android-app', recordings: ['long-build', 'user-twice'], beginsAtMs: 0, restMs: 8_000 },
  { agentId: 'data-pipeline', recordings: ['permission', 'failure'], beginsAtMs: 0, restMs: 11_000 },
  { agentId: 'web-frontend', recordings: ['message-while-waking', 'test-run'], beginsAtMs: 0, restMs: 7_000 },
  { agentId: 'infra-terraform', recordings: ['triple', 'deploy-watch', 'resume'], beginsAtMs: 2_000, restMs: 13_000 },
];

/**
 * Limits how many agents rest at the same time, so that some are always busy.
 *
 * Ordering: the agent that has rested longest resumes first.
 */
export class RestLimiter {
  readonly #agents: number;
  readonly #minBusy: number;
  readonly #resting: AbortController[] = [];

  constructor(agents: number, minBusy: number) {
    this.#agents = agents;
    this.#minBusy = minBusy;
  }

  /** Resolves after `ms`, on `signal`, or when too many agents rest. */
  async rest(ms: number, signal: AbortSignal): Promise<void> {
    const resume = new AbortController();
    this.#resting.push(resume);
    if (this.#agents - this.#resting.length < this.#minBusy) this.#resting.shift()?.abort();
    await sleepUntil(Date.now() + ms, AbortSignal.any([signal, resume.signal]));
    const place = this.#resting.indexOf(resume);
    if (place >= 0) this.#resting.splice(place, 1);
  }
}
