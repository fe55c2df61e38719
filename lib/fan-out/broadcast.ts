import { Pace } from '@/db/next-turn';
import type { RowPage, Wanted } from '@/lib/event-log/read-after';
import { formatTopic, type Topic } from '@/lib/protocol/frames';
import { EVERYTHING, type Scope, scopeKey } from '@/lib/protocol/scope';
import { isInScope } from './is-in-scope';
import { rowFrame, topicOf } from './row-frame';
import type { Subscriber } from './subscriber';
import { encodeText, Tick } from './tick';

/** All subscribers of the same topics with the same scope, who get the same bytes. */
interface Audience {
  topics: readonly Topic[];
  scope: Scope;
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
  #wanted: Wanted | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  *subscribers(): Iterable<Subscriber> {
    for (const { subscribers } of this.#audiences.values()) yield* subscribers;
  }

  /** @returns how to remove it; calling that twice does no harm. */
  add(topics: readonly Topic[], scope: Scope, subscriber: Subscriber): () => void {
    const key = JSON.stringify([scopeKey(scope), ...topics.map(formatTopic).sort()]);
    const audience = this.#audiences.get(key) ?? this.#newAudience(key, topics, scope);
    audience.subscribers.add(subscriber);
    this.#size += 1;
    return () => {
      if (!audience.subscribers.delete(subscriber)) return;
      this.#size -= 1;
      if (audience.subscribers.size === 0) this.#drop(key, audience);
    };
  }

  /** All topics that anybody listens to. */
  wanted(): Wanted {
    this.#wanted ??= wantedBy(
      [...this.#audiences.values()].flatMap(({ topics }) => topics),
      sharedScope([...this.#audiences.values()]),
    );
    return this.#wanted;
  }

  /**
   * Others get their turns while the rows are encoded; the chunks then go to all subscribers in one go.
   * @returns how many subscribers got something
   */
  async publish({ rows, upTo }: RowPage, from: number): Promise<number> {
    const ticks = new Map<Audience, Tick>();
    await new Pace().each(rows, (row) => {
      const audiences = this.#audiencesByTopic.get(topicOf(row));
      // those who wanted it have left while it was read
      if (audiences === undefined) return;
      const frame = { position: row.position, bytes: encodeText(rowFrame(row)) };
      for (const audience of audiences) {
        if (!isInScope(row, audience.scope)) continue;
        const tick = ticks.get(audience) ?? new Tick(from, upTo);
        ticks.set(audience, tick);
        tick.frames.push(frame);
      }
    });
    let count = 0;
    for (const [audience, tick] of ticks) {
      count += audience.subscribers.size;
      for (const subscriber of audience.subscribers) subscriber.offer(tick);
    }
    return count;
  }

  #newAudience(key: string, topics: readonly Topic[], scope: Scope): Audience {
    const audience: Audience = { topics, scope, subscribers: new Set() };
    this.#audiences.set(key, audience);
    for (const topic of topics) {
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
    }
    this.#wanted = null;
  }
}

/** What one read for all of them has to reach: everything, unless they all have the same scope. */
function sharedScope(audiences: readonly Audience[]): Scope {
  const [first, ...others] = audiences;
  const isShared = first !== undefined && others.every(({ scope }) => scopeKey(scope) === scopeKey(first.scope));
  return isShared ? first.scope : EVERYTHING;
}

export function wantedBy(topics: readonly Topic[], scope: Scope): Wanted {
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
