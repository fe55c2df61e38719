import { comparePositions, type Position } from '@interlude/protocol/position';
import { page } from './ask-server';
import { type ConnectionState, initialConnectionState, nextConnectionState } from './connection-state';
import { FrameQueue } from './frame-queue';
import type { TopicReader } from './live-connection';
import { openPort } from './open-port';
import { OwnWay } from './own-way';
import type { HubMessage, PageMessage, Port } from './port-messages';
import type { RowFrame } from './row-frame';

interface Subscription {
  topic: string;
  /** Up to where the reader was told: where to go on from if the hub has forgotten this page. */
  position: Position;
  reader: TopicReader;
}

/**
 * A page's end of the live connection.
 *
 * Ordering: frames reach a reader in order, at most one batch of slices per animation frame.
 * Failure: when the hub has forgotten this page (frozen tab, lost worker), it subscribes anew after what it was given.
 */
export class LiveClient {
  /** By the number that the hub knows each by. */
  readonly #subscriptions = new Map<number, Subscription>();
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
    if (!page.way) this.#holdLock();
    addEventListener('online', this.wake);
    addEventListener('offline', () => this.#post({ type: 'doubt' }));
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.wake();
    });
    addEventListener('pageshow', (event) => {
      if (event.persisted) this.#open();
    });
    addEventListener('pagehide', () => this.#post({ type: 'close' }));
  }

  /** What was refused or cut may be open again: don't sit out the delay. */
  readonly wake = (): void => this.#post({ type: 'wake' });

  get state(): ConnectionState {
    return this.#state;
  }

  onState(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  /** Everything of `topic` after `after`, then whatever comes. @returns unsubscribe */
  subscribe(topic: string, after: Position, reader: TopicReader): () => void {
    const key = this.#nextKey++;
    this.#subscriptions.set(key, { topic, position: after, reader });
    this.#post({ type: 'subscribe', key, topic, after });
    return () => {
      this.#subscriptions.delete(key);
      this.#queue.drop(reader);
      this.#post({ type: 'unsubscribe', key });
    };
  }

  #attach(port: Port): void {
    this.#port = port;
    port.onmessage = (event) => this.#receive(event.data as HubMessage);
    this.#open();
  }

  /** The hub waits for this lock; it gets it when the page is gone, however it went. */
  #holdLock(): void {
    navigator.locks
      // there are UUIDs wherever there are locks
      ?.request(`interlude-page-${crypto.randomUUID()}`, (lock) => {
        this.#lock = lock?.name ?? null;
        if (lock) this.#post({ type: 'lock', name: lock.name });
        return new Promise<never>(() => {});
      })
      .catch(() => {});
  }

  #open(): void {
    this.#post({ type: 'open' });
    if (this.#lock !== null) this.#post({ type: 'lock', name: this.#lock });
    for (const [key, { topic, position }] of this.#subscriptions) {
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
        this.#subscriptions.get(message.key)?.reader.reset();
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
    const subscription = this.#subscriptions.get(key);
    if (subscription === undefined) return;
    // After the page was taken back, frames that were already under way come twice.
    const unseen = frames.filter((frame) => comparePositions(frame.id, subscription.position) > 0);
    const last = unseen.at(-1);
    if (last === undefined) return;
    subscription.position = last.id;
    this.#queue.push(subscription.reader, unseen);
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
