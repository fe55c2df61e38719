import { comparePositions, type Position } from '@interlude/protocol/position';
import { personId } from '@/components/ui/browser-storage';
import { apiFetch, pageTransport } from './api-fetch';
import { type ConnectionState, initialConnectionState, nextConnectionState } from './connection-state';
import type { TopicReader } from './live-connection';
import type { HubMessage, PageMessage, Port } from './port-messages';
import type { RowFrame } from './row-frame';

interface Subscription {
  topic: string;
  /** Last delivered position, from which the page continues if the hub forgets it. */
  position: Position;
  reader: TopicReader;
}

/**
 * The page's side of the live connection.
 *
 * Ordering: a reader gets its frames in order, at most one batch of slices per animation frame.
 * Failure: if the hub has forgotten this page (frozen tab, lost worker), it subscribes again after the delivered
 * position.
 */
export class LiveClient {
  /** Subscriptions by the hub's key. */
  readonly #subscriptions = new Map<number, Subscription>();
  readonly #queue = new FrameQueue();
  readonly #stateListeners = new Set<() => void>();
  /** The hub's connection state, and the resulting state of this page. */
  #shared: ConnectionState = initialConnectionState(Date.now());
  #state = this.#shared;
  readonly #reachability = new ReachabilityProbe(() => this.#notify());
  #port: Port;
  #lock: string | null = null;
  #nextKey = 1;

  constructor() {
    this.#port = openPort((port) => this.#attach(port));
    this.#attach(this.#port);
    if (!pageTransport.fetch) this.#holdLock();
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

  /** Retries immediately: a refused or dropped connection may work again. */
  readonly wake = (): void => this.#post({ type: 'wake' });

  get state(): ConnectionState {
    return this.#state;
  }

  onState(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  /** Delivers everything in `topic` after `after`, then new frames. @returns a function that unsubscribes */
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

  /** The hub waits for this lock and gets it when the page is gone. */
  #holdLock(): void {
    navigator.locks
      // randomUUID exists wherever locks do.
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
        this.#notify();
        return;
      case 'frames':
        this.#deliver(message.key, message.frames);
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

  #deliver(key: number, frames: readonly RowFrame[]): void {
    const subscription = this.#subscriptions.get(key);
    if (subscription === undefined) return;
    // A page that reopened may receive frames twice.
    const unseen = frames.filter((frame) => comparePositions(frame.id, subscription.position) > 0);
    const last = unseen.at(-1);
    if (last === undefined) return;
    subscription.position = last.id;
    this.#queue.push(subscription.reader, unseen);
  }

  #notify(): void {
    const { lostAt } = this.#reachability;
    this.#state = lostAt === null ? this.#shared : nextConnectionState(this.#shared, 'cut', lostAt, lostAt);
    for (const listener of this.#stateListeners) listener();
  }

  #post(message: PageMessage): void {
    this.#port.postMessage(message);
  }
}

const LOAD_AGAIN_MS = 3_000;

/**
 * Connects to the browser's SharedWorker, or to a hub in this page if there is no SharedWorker (some mobile browsers)
 * or it must not be shared (an embed). Both use the same messages.
 *
 * Failure: if the worker script can't be loaded (an old page after an upgrade), a hub in this page replaces it.
 */
function openPort(replace: (port: Port) => void): Port {
  if (pageTransport.fetch || typeof SharedWorker === 'undefined') return portOfThisPage();
  try {
    const worker = new SharedWorker(new URL('./live-worker.ts', import.meta.url), {
      type: 'module',
      // One worker per user, so that no stream reaches another user.
      name: personId() ?? '',
    });
    worker.onerror = () => replace(portOfThisPage());
    return worker.port;
  } catch {
    return portOfThisPage();
  }
}

function portOfThisPage(): Port {
  const { port1, port2 } = new MessageChannel();
  attachHub(port2);
  return port1;
}

/** Loaded only where it is needed. Messages wait in the channel. */
function attachHub(port: Port): void {
  import('./port-hub').then(
    ({ PortHub }) => new PortHub(undefined).attach(port),
    () => setTimeout(attachHub, LOAD_AGAIN_MS, port),
  );
}

/** Timeout of the check. A server on this machine or network answers sooner. */
const ANSWER_WITHIN_MS = 3_000;

/** @throws TypeError or DOMException if this page can't reach the server */
export function checkHealth(): Promise<Response> {
  return apiFetch('/healthz', { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
}

/**
 * Checks whether this page itself can reach the server. `navigator.onLine` is not enough: a local server works offline,
 * and a remote one may be down while the browser is online.
 */
class ReachabilityProbe {
  readonly #onChange: () => void;
  #lostAt: number | null = null;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
    addEventListener('offline', () => void this.#probe());
    addEventListener('online', () => this.#set(null));
  }

  /** Start of the outage, epoch milliseconds; null if the server is reachable as far as known. */
  get lostAt(): number | null {
    return this.#lostAt;
  }

  async #probe(): Promise<void> {
    const at = Date.now();
    const isReachable = await checkHealth().then(
      () => true,
      () => false,
    );
    // Ignores the failure if the network is back by now.
    if (!isReachable && !navigator.onLine) this.#set(at);
  }

  #set(lostAt: number | null): void {
    if (lostAt === this.#lostAt) return;
    this.#lostAt = lostAt;
    this.#onChange();
  }
}

/** Time budget of a flush: half of a 60 Hz frame. */
const FLUSH_BUDGET_MS = 8;
const SLICE = 200;
/** Hidden pages get no animation frames, but frames must not pile up. */
const HIDDEN_FLUSH_MS = 250;

/**
 * Delivers frames once per animation frame, in slices, so that a burst (a resume over ten thousand events, five hundred
 * deltas per second) never becomes one long task.
 *
 * Ordering: first in, first out per reader.
 */
class FrameQueue {
  readonly #waiting = new Map<TopicReader, RowFrame[]>();
  #scheduled = false;

  push(reader: TopicReader, frames: RowFrame[]): void {
    const queue = this.#waiting.get(reader);
    if (queue) for (const frame of frames) queue.push(frame);
    else this.#waiting.set(reader, frames.slice());
    this.#schedule();
  }

  drop(reader: TopicReader): void {
    this.#waiting.delete(reader);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const flush = () => {
      this.#scheduled = false;
      this.#flush();
    };
    if (document.visibilityState === 'visible') requestAnimationFrame(flush);
    else setTimeout(flush, HIDDEN_FLUSH_MS);
  }

  #flush(): void {
    const deadline = performance.now() + FLUSH_BUDGET_MS;
    for (const [reader, queue] of this.#waiting) {
      let taken = 0;
      while (taken < queue.length && performance.now() < deadline) {
        reader.frames(queue.slice(taken, taken + SLICE));
        taken += SLICE;
        // A reader may unsubscribe during its delivery.
        if (!this.#waiting.has(reader)) break;
      }
      if (taken >= queue.length) this.#waiting.delete(reader);
      else queue.splice(0, taken);
    }
    if (this.#waiting.size > 0) this.#schedule();
  }
}
