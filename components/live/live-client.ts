import { comparePositions, laterPosition, type Position } from '@/lib/protocol/position';
import { type ConnectionState, initialConnectionState, nextConnectionState } from './connection-state';
import { FrameQueue } from './frame-queue';
import { openPort } from './open-port';
import { OwnWay } from './own-way';
import type { HubMessage, PageMessage, Port } from './port-messages';
import type { RowFrame } from './row-frame';

export interface TopicListener {
  frames(frames: RowFrame[]): void;
  reset(): void;
}

interface Reader {
  /** Up to where it has been told. */
  seen: Position;
  deliver: (frames: RowFrame[]) => void;
  reset: () => void;
}

/** A topic that the page reads, once for all its readers. */
interface Channel {
  topic: string;
  key: number;
  /** Where to go on from if the hub has forgotten this page. */
  position: Position;
  readers: Set<Reader>;
}

/**
 * A page's end of the live connection.
 *
 * Ordering: frames reach a listener in order, at most one batch of slices per animation frame.
 * Failure: when the hub has forgotten this page (frozen tab, lost worker), it subscribes anew after what it was given.
 */
export class LiveClient {
  readonly #channels = new Map<string, Channel>();
  readonly #queue = new FrameQueue();
  readonly #stateListeners = new Set<() => void>();
  /** What the hub says of the connection, and what that comes to for this page. */
  #shared: ConnectionState = initialConnectionState(Date.now());
  #state = this.#shared;
  readonly #ownWay = new OwnWay(() => this.#tell());
  #port: Port;
  #lock: string | null = null;
  #nextKey = 1;

  constructor() {
    this.#port = openPort((port) => this.#attach(port));
    this.#attach(this.#port);
    this.#holdLock();
    addEventListener('online', () => this.#post({ type: 'wake' }));
    addEventListener('offline', () => this.#post({ type: 'doubt' }));
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.#post({ type: 'wake' });
    });
    addEventListener('pageshow', (event) => {
      if (event.persisted) this.#open();
    });
    addEventListener('pagehide', () => this.#post({ type: 'close' }));
  }

  get state(): ConnectionState {
    return this.#state;
  }

  onState(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  /** Everything of `topic` after `after`, then whatever comes. @returns unsubscribe */
  subscribe(topic: string, after: Position, listener: TopicListener): () => void {
    const reader: Reader = {
      seen: after,
      deliver: (frames) => listener.frames(frames),
      reset: () => listener.reset(),
    };
    const known = this.#channels.get(topic);
    const channel = known ?? { topic, key: 0, position: after, readers: new Set() };
    channel.readers.add(reader);
    this.#channels.set(topic, channel);
    // What came before is told once more to the whole page, and heard by those who lack it.
    if (known === undefined || comparePositions(after, known.position) < 0) this.#read(channel, after);
    return () => {
      channel.readers.delete(reader);
      this.#queue.drop(reader.deliver);
      if (channel.readers.size > 0) return;
      this.#channels.delete(topic);
      this.#post({ type: 'unsubscribe', key: channel.key });
    };
  }

  #read(channel: Channel, after: Position): void {
    const before = channel.key;
    channel.key = this.#nextKey++;
    channel.position = after;
    this.#post({ type: 'subscribe', key: channel.key, topic: channel.topic, after });
    if (before > 0) this.#post({ type: 'unsubscribe', key: before });
  }

  #attach(port: Port): void {
    this.#port = port;
    port.onmessage = (event) => this.#receive(event.data as HubMessage);
    this.#open();
  }

  /** The hub waits for this lock; it gets it when the page is gone, however it went. */
  #holdLock(): void {
    const name = `interlude-page-${crypto.randomUUID()}`;
    navigator.locks
      ?.request(name, () => {
        this.#lock = name;
        this.#post({ type: 'lock', name });
        return new Promise<never>(() => {});
      })
      .catch(() => {});
  }

  #open(): void {
    this.#post({ type: 'open' });
    if (this.#lock !== null) this.#post({ type: 'lock', name: this.#lock });
    this.#resubscribe();
  }

  #resubscribe(): void {
    for (const { key, topic, position } of this.#channels.values()) {
      this.#post({ type: 'subscribe', key, topic, after: position });
    }
  }

  #receive(message: HubMessage): void {
    switch (message.type) {
      case 'state':
        this.#shared = message.state;
        this.#tell();
        return;
      case 'frames':
        this.#take(message.key, message.frames);
        return;
      case 'reset':
        for (const reader of [...(this.#channelOf(message.key)?.readers ?? [])]) reader.reset();
        return;
      case 'ping':
        this.#post({ type: 'pong' });
        return;
      case 'unknown':
        this.#open();
        return;
    }
  }

  #take(key: number, frames: readonly RowFrame[]): void {
    const channel = this.#channelOf(key);
    if (channel === undefined) return;
    for (const reader of channel.readers) {
      const unseen = frames.filter((frame) => comparePositions(frame.id, reader.seen) > 0);
      const last = unseen.at(-1);
      if (last === undefined) continue;
      reader.seen = last.id;
      this.#queue.push(reader.deliver, unseen);
    }
    const last = frames.at(-1);
    // After a new subscription frames that were already under way come twice.
    if (last !== undefined) channel.position = laterPosition(channel.position, last.id);
  }

  #channelOf(key: number): Channel | undefined {
    return [...this.#channels.values()].find((channel) => channel.key === key);
  }

  #tell(): void {
    const { lostAt } = this.#ownWay;
    this.#state = lostAt === null ? this.#shared : nextConnectionState(this.#shared, 'cut', lostAt, lostAt);
    for (const listener of this.#stateListeners) listener();
  }

  #post(message: PageMessage): void {
    this.#port.postMessage(message);
  }
}
