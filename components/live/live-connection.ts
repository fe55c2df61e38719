import { comparePositions, type Position } from '@/lib/protocol/position';
import {
  type ConnectionEvent,
  type ConnectionState,
  initialConnectionState,
  nextConnectionState,
} from './connection-state';
import { readStream } from './read-stream';
import { reconnectDelayMs } from './reconnect-delay';
import { type RowFrame, topicOf } from './row-frame';
import { TopicTrack } from './topic-track';

/** A topic nobody reads any more stays on the stream this long: going back and forth costs no new connection. */
const LINGER_MS = 20_000;
/** Subscriptions of one page come in a burst; they share one request. */
const GATHER_MS = 10;
/** A gap stays said at least this long. */
const GAP_SHOWN_MS = 20_000;

export interface TopicReader {
  frames(frames: RowFrame[]): void;
  /** Rows were missed for good. Reload the snapshot, then subscribe after its position. */
  reset(): void;
}

interface Subscription extends TopicReader {
  topic: string;
  /** The last position this reader was given: every reader sees each row once, whatever the stream repeats. */
  seen: Position;
}

interface Options {
  onState?: (state: ConnectionState) => void;
  fetch?: typeof fetch;
  now?: () => number;
  random?: () => number;
}

/**
 * The one live connection: any number of readers and topics on a single `GET /stream`.
 *
 * Ordering: positions come from one counter, so a frame at N says that all topics of the stream are told up to N. A
 * new topic re-opens the stream at the smallest position anyone needs; what the others had already is dropped here.
 * Failure: a cut, a silence of 40 s, a `bye` or a changed set of topics all resume by position. A `gap` resets readers.
 */
export class LiveConnection {
  readonly #options: Required<Options>;
  readonly #subscriptions = new Map<number, Subscription>();
  readonly #tracks = new Map<string, TopicTrack>();
  readonly #unreadSince = new Map<string, number>();
  #nextId = 1;
  #state: ConnectionState;
  #stream: { topics: Set<string>; abort: AbortController } | null = null;
  #openTimer: ReturnType<typeof setTimeout> | null = null;
  #lingerTimer: ReturnType<typeof setTimeout> | null = null;
  #gapTimer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  constructor(options: Options = {}) {
    this.#options = {
      onState: options.onState ?? (() => {}),
      fetch: options.fetch ?? ((...args) => globalThis.fetch(...args)),
      now: options.now ?? Date.now,
      random: options.random ?? Math.random,
    };
    this.#state = initialConnectionState(this.#options.now());
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Everything of `topic` after `after`, then whatever comes. @returns the id to `unsubscribe` with */
  subscribe(topic: string, after: Position, reader: TopicReader): number {
    const id = this.#nextId++;
    const subscription: Subscription = {
      topic,
      seen: after,
      frames: (frames) => reader.frames(frames),
      reset: () => reader.reset(),
    };
    this.#subscriptions.set(id, subscription);
    this.#unreadSince.delete(topic);
    const track = this.#tracks.get(topic);
    if (track?.covers(after)) {
      this.#deliver(subscription, track.since(after));
      if (!this.#stream && !this.#openTimer) this.#openSoon(GATHER_MS);
      return id;
    }
    if (track) track.rewind(after);
    else this.#tracks.set(topic, new TopicTrack(after));
    // What the present stream still says of this topic would leave a hole before it; the next stream tells it all.
    this.#stream?.topics.delete(topic);
    this.#openSoon(GATHER_MS);
    return id;
  }

  unsubscribe(id: number): void {
    const topic = this.#subscriptions.get(id)?.topic;
    this.#subscriptions.delete(id);
    if (topic === undefined || [...this.#subscriptions.values()].some((other) => other.topic === topic)) return;
    this.#unreadSince.set(topic, this.#options.now());
    this.#lingerTimer ??= setTimeout(() => this.#dropUnread(), LINGER_MS);
  }

  /** The network is back, or somebody looks again: don't sit out the delay. */
  wake(): void {
    if (!this.#stream && this.#subscriptions.size > 0) this.#openSoon(0);
  }

  close(): void {
    this.#closed = true;
    for (const timer of [this.#openTimer, this.#lingerTimer, this.#gapTimer]) if (timer) clearTimeout(timer);
    this.#stream?.abort.abort();
    this.#stream = null;
  }

  #openSoon(delayMs: number): void {
    if (this.#closed) return;
    if (this.#openTimer) clearTimeout(this.#openTimer);
    this.#openTimer = setTimeout(() => {
      this.#openTimer = null;
      void this.#open();
    }, delayMs);
  }

  async #open(): Promise<void> {
    const topics = [...this.#tracks.keys()];
    this.#stream?.abort.abort();
    this.#stream = null;
    if (topics.length === 0 || this.#closed) return;
    this.#transition('retry');
    const stream = { topics: new Set(topics), abort: new AbortController() };
    this.#stream = stream;
    const after = topics
      .map((topic) => (this.#tracks.get(topic) as TopicTrack).position)
      .reduce((least, position) => (comparePositions(position, least) < 0 ? position : least));

    // A stream that has been replaced must not speak any more, even about bytes it had already read.
    const current =
      <Args extends unknown[]>(handle: (...args: Args) => void) =>
      (...args: Args) => {
        if (this.#stream === stream) handle(...args);
      };
    const end = await readStream(
      { topics, after, signal: stream.abort.signal, fetch: this.#options.fetch },
      {
        hello: current((hello) => {
          if (hello.resume === 'gap') this.#reset(hello.position);
        }),
        rows: current((frames) => this.#take(frames)),
        upToDate: current((position) => {
          for (const topic of stream.topics) this.#tracks.get(topic)?.advance(position);
          this.#transition('up-to-date');
        }),
      },
    );
    if (this.#stream !== stream) return;
    this.#stream = null;
    if (end === 'unauthorized') {
      this.#transition('unauthorized');
    } else if (end === 'bye') {
      this.#openSoon(0);
    } else {
      this.#transition('cut');
      this.#openSoon(reconnectDelayMs(this.#state.attempt, this.#options.random()));
    }
  }

  #take(frames: RowFrame[]): void {
    const streamed = this.#stream?.topics ?? new Set<string>();
    const fresh = new Map<string, RowFrame[]>();
    for (const frame of frames) {
      const topic = topicOf(frame);
      if (!streamed.has(topic) || !this.#tracks.get(topic)?.take(frame)) continue;
      const list = fresh.get(topic);
      if (list) list.push(frame);
      else fresh.set(topic, [frame]);
    }
    const last = frames.at(-1)?.id;
    if (last !== undefined) for (const topic of streamed) this.#tracks.get(topic)?.advance(last);
    if (fresh.size === 0) return;
    for (const subscription of this.#subscriptions.values()) {
      const own = fresh.get(subscription.topic);
      if (own) this.#deliver(subscription, own);
    }
  }

  #deliver(subscription: Subscription, frames: RowFrame[]): void {
    const unseen = frames.filter((frame) => comparePositions(frame.id, subscription.seen) > 0);
    const last = unseen.at(-1);
    if (!last) return;
    subscription.seen = last.id;
    subscription.frames(unseen);
  }

  #reset(position: Position): void {
    this.#transition('gap');
    for (const track of this.#tracks.values()) track.rewind(position);
    for (const subscription of [...this.#subscriptions.values()]) subscription.reset();
    if (this.#gapTimer) clearTimeout(this.#gapTimer);
    this.#gapTimer = setTimeout(() => this.#transition('gap-shown'), GAP_SHOWN_MS);
  }

  #dropUnread(): void {
    this.#lingerTimer = null;
    const limit = this.#options.now() - LINGER_MS;
    let dropped = false;
    for (const [topic, since] of this.#unreadSince) {
      if (since > limit) continue;
      this.#unreadSince.delete(topic);
      this.#tracks.delete(topic);
      dropped = true;
    }
    if (this.#unreadSince.size > 0) this.#lingerTimer = setTimeout(() => this.#dropUnread(), LINGER_MS);
    // While the delay after a cut runs, the next open has the new set of topics by itself.
    if (dropped && this.#stream) this.#openSoon(0);
  }

  #transition(event: ConnectionEvent): void {
    const next = nextConnectionState(this.#state, event, this.#options.now());
    if (next === this.#state) return;
    this.#state = next;
    this.#options.onState(next);
  }
}
