import { comparePositions, type Position } from '@/lib/protocol/position';
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

interface Subscription {
  topic: string;
  /** Where to go on from if the hub has forgotten this page. */
  position: Position;
  listener: TopicListener;
  deliver: (frames: RowFrame[]) => void;
}

/**
 * A page's end of the live connection.
 *
 * Ordering: frames reach a listener in order, at most one batch of slices per animation frame.
 * Failure: when the hub has forgotten this page (frozen tab, lost worker), it subscribes anew after what it was given.
 */
export class LiveClient {
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

  /** @returns unsubscribe */
  subscribe(topic: string, after: Position, listener: TopicListener): () => void {
    const key = this.#nextKey++;
    const subscription: Subscription = {
      topic,
      position: after,
      listener,
      deliver: (frames) => listener.frames(frames),
    };
    this.#subscriptions.set(key, subscription);
    this.#post({ type: 'subscribe', key, topic, after });
    return () => {
      this.#subscriptions.delete(key);
      this.#queue.drop(subscription.deliver);
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
      case 'frames': {
        const subscription = this.#subscriptions.get(message.key);
        if (!subscription) return;
        // After a new subscription frames that were already under way come twice.
        const fresh = message.frames.filter((frame) => comparePositions(frame.id, subscription.position) > 0);
        const last = fresh.at(-1);
        if (!last) return;
        subscription.position = last.id;
        this.#queue.push(subscription.deliver, fresh);
        return;
      }
      case 'reset':
        this.#subscriptions.get(message.key)?.listener.reset();
        return;
      case 'ping':
        this.#post({ type: 'pong' });
        return;
      case 'unknown':
        this.#open();
        return;
    }
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
