import { formatTopic, type Topic } from '@interlude/protocol/frames';
import { EVERYTHING, type Scope, scopeKey } from '@interlude/protocol/scope';
import { Yielder } from '@/db/yield-to-loop';
import type { ShownDigests } from '@/lib/server/access/shown-digests';
import type { Row, RowPage, TopicFilter } from '@/lib/server/event-log/read-after';
import type { RowRedactor } from './row-frame';
import { isInScope, isRemovedAfter, rowFrame, topicOf, withDigests } from './row-frame';
import type { Subscriber } from './subscriber';
import { encodeText, Tick, type TickFrame } from './subscriber';

/** What subscribers may be told, besides the topics that they ask for. */
export interface ReaderView {
  scope: Scope;
  /** No secrets. */
  redacts: boolean;
  digests: ShownDigests;
}

/** All subscribers of the same topics that see the same, who get the same bytes. */
interface Audience extends ReaderView {
  topics: readonly Topic[];
  subscribers: Set<Subscriber>;
}

/**
 * Who listens to what. A tick's rows are encoded once each and joined once per audience; every subscriber of the
 * audience gets that same chunk.
 *
 * Ordering: an audience's frames keep the order of the rows.
 * Failure: a subscriber that can't take its chunk ends, and no other is affected.
 */
export class Broadcast {
  readonly #audiences = new Map<string, Audience>();
  readonly #audiencesByTopic = new Map<string, Set<Audience>>();
  #wanted: TopicFilter | null = null;
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

  /** @returns how to remove it; calling that twice does no harm. */
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

  /** All topics that anybody listens to. */
  wanted(): TopicFilter {
    this.#wanted ??= topicFilter(
      [...this.#audiences.values()].flatMap(({ topics }) => topics),
      sharedScope([...this.#audiences.values()]),
    );
    return this.#wanted;
  }

  /**
   * Others get their turns while the rows are encoded; the chunks then go to all subscribers in one go.
   * @param whole up to there, nothing can have been removed before it was read
   * @returns how many subscribers got something
   */
  async publish({ rows, upTo, removedUpTo }: RowPage, from: number, whole: number): Promise<number> {
    if (removedUpTo > whole) endAll(this.#audiencesByTopic.get('fleet') ?? new Set());
    const ticks = new Map<Audience, Tick>();
    const yielder = new Yielder();
    for (const row of rows) {
      const audiences = this.#audiencesByTopic.get(topicOf(row));
      // those who wanted it have left while it was read
      if (audiences === undefined) continue;
      if (isRemovedAfter(row, whole)) endAll(audiences, row);
      const [all, some] = framesFor(audiences, row);
      const told = some ? await this.#redacted(row, audiences) : null;
      const frame = all ? rowFrame(row) : null;
      const frames = new Map<string, TickFrame>();
      for (const audience of audiences) {
        if (!isInScope(row, audience.scope)) continue;
        const text = audience.redacts ? told : frame;
        if (text === null) continue;
        const own = frameFor(row, text, audience, frames);
        const tick = ticks.get(audience) ?? new Tick(from, upTo);
        ticks.set(audience, tick);
        tick.frames.push(own);
      }
      if (yielder.isDue) await yielder.rest();
    }
    let count = 0;
    for (const [audience, tick] of ticks) {
      count += audience.subscribers.size;
      for (const subscriber of audience.subscribers) subscriber.offer(tick);
    }
    return count;
  }

  /** Who can't be told what comes now has to resume. */
  async #redacted(row: Row, audiences: ReadonlySet<Audience>): Promise<string | null> {
    try {
      return await this.#redactor.frame(row);
    } catch (error) {
      for (const { redacts, subscribers } of [...audiences]) {
        if (redacts) for (const subscriber of [...subscribers]) subscriber.fail(error);
      }
      return null;
    }
  }

  #newAudience(key: string, said: Omit<Audience, 'subscribers'>): Audience {
    const audience: Audience = { ...said, subscribers: new Set() };
    this.#audiences.set(key, audience);
    for (const topic of audience.topics) {
      const name = formatTopic(topic);
      const audiences = this.#audiencesByTopic.get(name) ?? new Set();
      this.#audiencesByTopic.set(name, audiences.add(audience));
    }
    this.#wanted = null;
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
    this.#wanted = null;
  }
}

/** They resume, and are told that there is a gap. */
function endAll(audiences: ReadonlySet<Audience>, row: Row | null = null): void {
  for (const { scope, subscribers } of [...audiences]) {
    if (row === null || isInScope(row, scope)) for (const subscriber of [...subscribers]) subscriber.close('planned');
  }
}

/** The row's frame with the audience's digests, made once for all audiences that see it alike. */
function frameFor(row: Row, text: string, { redacts, digests }: Audience, frames: Map<string, TickFrame>): TickFrame {
  const key = `${redacts} ${digests.kind}`;
  const made = frames.get(key) ?? { position: row.position, bytes: encodeText(withDigests(text, row, digests)) };
  frames.set(key, made);
  return made;
}

/** Whether any of them is told everything, and any no secrets. */
function framesFor(audiences: ReadonlySet<Audience>, row: Row): [all: boolean, some: boolean] {
  let [all, some] = [false, false];
  for (const { redacts, scope } of audiences) {
    if (!isInScope(row, scope)) continue;
    if (redacts) some = true;
    else all = true;
  }
  return [all, some];
}

/** What one read for all of them has to reach: everything, unless they all have the same scope. */
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
