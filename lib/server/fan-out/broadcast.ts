import { EVERYTHING, type Scope, scopeKey } from '@interlude/protocol/scope';
import { formatTopic, type Topic } from '@interlude/protocol/sse';
import { Yielder } from '@/db/yield-to-loop';
import type { ShownDigests } from '@/lib/server/access/shown-digests';
import type { Row, RowPage, TopicFilter } from '@/lib/server/event-log/read-after';
import { isInScope, isRemovedAfter, type RowRedactor, rowFrame, topicOf, withDigests } from './encode-row';
import { encodeText, type Subscriber, Tick, type TickFrame } from './subscriber';

/** The part of its topics that a subscriber may see. */
interface ReaderView {
  scope: Scope;
  /** True to redact secrets. */
  redacts: boolean;
  digests: ShownDigests;
}

/** Subscribers with the same topics and view, which receive the same bytes. */
interface Audience extends ReaderView {
  topics: readonly Topic[];
  subscribers: Set<Subscriber>;
}

/**
 * Delivers each tick of the tailer to its subscribers. A row is encoded once and joined once per audience, and all
 * subscribers of an audience share the chunk.
 *
 * Ordering: the frames of an audience keep the order of the rows.
 * Failure: a subscriber that can't accept its chunk ends. No other is affected.
 */
export class Broadcast {
  readonly #audiences = new Map<string, Audience>();
  readonly #audiencesByTopic = new Map<string, Set<Audience>>();
  #filter: TopicFilter | null = null;
  #size = 0;
  readonly #redactor: RowRedactor;

  constructor(redactor: RowRedactor) {
    this.#redactor = redactor;
  }

  get size(): number {
    return this.#size;
  }

  *subscribers(): Iterable<Subscriber> {
    for (const { subscribers } of this.#audiences.values()) yield* subscribers;
  }

  /** @returns a function that removes the subscriber; may be called twice */
  add(topics: readonly Topic[], { scope, redacts, digests }: ReaderView, subscriber: Subscriber): () => void {
    const key = JSON.stringify([scopeKey(scope), redacts, digests.kind, ...topics.map(formatTopic).sort()]);
    const audience = this.#audiences.get(key) ?? this.#newAudience(key, { topics, scope, redacts, digests });
    audience.subscribers.add(subscriber);
    this.#size += 1;
    return () => {
      if (!audience.subscribers.delete(subscriber)) return;
      this.#size -= 1;
      if (audience.subscribers.size === 0) this.#drop(key, audience);
    };
  }

  filter(): TopicFilter {
    this.#filter ??= topicFilter(
      [...this.#audiences.values()].flatMap(({ topics }) => topics),
      sharedScope([...this.#audiences.values()]),
    );
    return this.#filter;
  }

  /**
   * Yields to the event loop while encoding, then hands the chunks to all subscribers together.
   * @param completeTo position up to which every row was read before retention removed it
   * @returns the number of subscribers that received a chunk
   */
  async publish({ rows, upTo, removedUpTo }: RowPage, from: number, completeTo: number): Promise<number> {
    if (removedUpTo > completeTo) endAll(this.#audiencesByTopic.get('fleet') ?? new Set());
    const ticks = new Map<Audience, Tick>();
    const yielder = new Yielder();
    for (const row of rows) {
      const audiences = this.#audiencesByTopic.get(topicOf(row));
      // The audience's readers left during the read.
      if (audiences === undefined) continue;
      if (isRemovedAfter(row, completeTo)) endAll(audiences, row);
      const views = [...audiences].filter(({ scope }) => isInScope(row, scope));
      const redacted = views.some(({ redacts }) => redacts) ? await this.#redactedFrame(row, audiences) : null;
      const plain = views.some(({ redacts }) => !redacts) ? rowFrame(row) : null;
      const frames = new Map<string, TickFrame>();
      for (const audience of views) {
        const text = audience.redacts ? redacted : plain;
        if (text === null) continue;
        const own = frameFor(row, text, audience, frames);
        const tick = ticks.get(audience) ?? new Tick(from, upTo);
        ticks.set(audience, tick);
        tick.frames.push(own);
      }
      if (yielder.isDue) await yielder.yieldIfDue();
    }
    let count = 0;
    for (const [audience, tick] of ticks) {
      count += audience.subscribers.size;
      for (const subscriber of audience.subscribers) subscriber.offer(tick);
    }
    return count;
  }

  /** If a read fails, ends the streams that need redaction. Their clients resume. */
  async #redactedFrame(row: Row, audiences: ReadonlySet<Audience>): Promise<string | null> {
    try {
      return await this.#redactor.frame(row);
    } catch (error) {
      for (const { redacts, subscribers } of [...audiences]) {
        if (redacts) for (const subscriber of [...subscribers]) subscriber.fail(error);
      }
      return null;
    }
  }

  #newAudience(key: string, options: Omit<Audience, 'subscribers'>): Audience {
    const audience: Audience = { ...options, subscribers: new Set() };
    this.#audiences.set(key, audience);
    for (const topic of audience.topics) {
      const name = formatTopic(topic);
      const audiences = this.#audiencesByTopic.get(name) ?? new Set();
      this.#audiencesByTopic.set(name, audiences.add(audience));
    }
    this.#filter = null;
    return audience;
  }

  #drop(key: string, audience: Audience): void {
    this.#audiences.delete(key);
    for (const topic of audience.topics) {
      const name = formatTopic(topic);
      const audiences = this.#audiencesByTopic.get(name);
      audiences?.delete(audience);
      if (audiences?.size === 0) this.#audiencesByTopic.delete(name);
      if (topic.kind === 'session' && ![...(audiences ?? [])].some(({ redacts }) => redacts)) {
        this.#redactor.forget(topic.sessionId);
      }
    }
    this.#filter = null;
  }
}

/** The clients of the ended streams resume, with a gap. */
function endAll(audiences: ReadonlySet<Audience>, row: Row | null = null): void {
  for (const { scope, subscribers } of [...audiences]) {
    if (row === null || isInScope(row, scope)) for (const subscriber of [...subscribers]) subscriber.close('planned');
  }
}

/** Encodes a row once for all audiences with the same view. */
function frameFor(row: Row, text: string, { redacts, digests }: Audience, frames: Map<string, TickFrame>): TickFrame {
  const key = `${redacts} ${digests.kind}`;
  const frame = frames.get(key) ?? { position: row.position, bytes: encodeText(withDigests(text, row, digests)) };
  frames.set(key, frame);
  return frame;
}

/** One read serves all audiences, so it covers everything unless they share a scope. */
function sharedScope(audiences: readonly Audience[]): Scope {
  const [first, ...others] = audiences;
  const isShared = first !== undefined && others.every(({ scope }) => scopeKey(scope) === scopeKey(first.scope));
  return isShared ? first.scope : EVERYTHING;
}

export function topicFilter(topics: readonly Topic[], scope: Scope): TopicFilter {
  const sessionIds = new Set<string>();
  const agentIds = new Set<string>();
  let fleet = false;
  for (const topic of topics) {
    if (topic.kind === 'fleet') fleet = true;
    else if (topic.kind === 'session') sessionIds.add(topic.sessionId);
    else agentIds.add(topic.agentId);
  }
  return { fleet, sessionIds: [...sessionIds], agentIds: [...agentIds], scope };
}
