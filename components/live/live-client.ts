import { comparePositions, type Position } from '@interlude/protocol/position';
import { personId } from '@/components/ui/browser-storage';
import { askServer, page } from './ask-server';
import { type ConnectionState, initialConnectionState, nextConnectionState } from './connection-state';
import type { TopicReader } from './live-connection';
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

const LOAD_AGAIN_MS = 3_000;

/**
 * The way to the live connection: the SharedWorker of this browser, or a hub of this page's own where there is none
 * (some mobile browsers) or this page must not share it (an embed). Both speak the same messages.
 *
 * Failure: a worker script that can't be loaded (an old page after an upgrade) is replaced by a hub of the page's own.
 */
function openPort(replace: (port: Port) => void): Port {
  if (page.way || typeof SharedWorker === 'undefined') return portOfThisPage();
  try {
    const worker = new SharedWorker(new URL('./live-worker.ts', import.meta.url), {
      type: 'module',
      // One worker per person, so no stream reaches another person.
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

/** Most browsers never need its code. What is posted before it has come waits in the channel. */
function attachHub(port: Port): void {
  import('./port-hub').then(
    ({ PortHub }) => new PortHub(undefined).attach(port),
    () => setTimeout(attachHub, LOAD_AGAIN_MS, port),
  );
}

/** An answer from this very machine or its network takes no longer. */
const ANSWER_WITHIN_MS = 3_000;

/**
 * Whether this page has a way to the server of its own, beside the connection that all pages share. A browser tells of
 * its network only whether there is one: a server on this machine is there without, and one behind a dead line is not.
 */
class OwnWay {
  readonly #onChange: () => void;
  #lostAt: number | null = null;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
    addEventListener('offline', () => void this.#look());
    addEventListener('online', () => this.#set(null));
  }

  /** Since when there is none; null while there is, as far as known. */
  get lostAt(): number | null {
    return this.#lostAt;
  }

  async #look(): Promise<void> {
    const at = Date.now();
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const isThere = await askServer('/healthz', { signal }).then(
      () => true,
      () => false,
    );
    // It may be back by now.
    if (!isThere && !navigator.onLine) this.#set(at);
  }

  #set(lostAt: number | null): void {
    if (lostAt === this.#lostAt) return;
    this.#lostAt = lostAt;
    this.#onChange();
  }
}

/** Time one flush may take before the rest waits for the next frame: half of what a 60 Hz frame grants. */
const FLUSH_BUDGET_MS = 8;
const SLICE = 200;
/** Hidden pages get no animation frames, yet what arrives must not pile up. */
const HIDDEN_FLUSH_MS = 250;

/**
 * Hands frames over once per animation frame, in slices, so that a burst (a resume over ten thousand events, five
 * hundred deltas a second) never becomes one long task.
 *
 * Ordering: per reader first in, first out.
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
        // A reader may leave while it is being served.
        if (!this.#waiting.has(reader)) break;
      }
      if (taken >= queue.length) this.#waiting.delete(reader);
      else queue.splice(0, taken);
    }
    if (this.#waiting.size > 0) this.#schedule();
  }
}
