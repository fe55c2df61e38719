import type { ConnectionState } from './connection-state';
import { LiveConnection } from './live-connection';
import type { HubMessage, PageMessage, Port } from './port-messages';

const PING_MS = 20_000;
/** A page without Web Locks counts as closed after this many unanswered pings. */
const MISSED_PINGS = 3;

interface Page {
  /** Unsubscribe functions by the page's subscription key. */
  subscriptions: Map<number, () => void>;
  missedPings: number;
  holdsLock: boolean;
}

/**
 * Shares one LiveConnection between the pages of a browser.
 *
 * Ordering: a port delivers in order, so each subscription gets its frames in the connection's order.
 * Failure: a closed tab releases its Web Lock or misses its pings. A page that only slept gets `unknown` for its next
 * message, and subscribes again after its position.
 */
export class PortHub {
  readonly #pages = new Map<Port, Page>();
  readonly #connection: LiveConnection;
  readonly #locks: LockManager | undefined;

  constructor(
    locks: LockManager | undefined,
    connect: (onState: (state: ConnectionState) => void) => LiveConnection = (onState) =>
      new LiveConnection({ onState }),
  ) {
    this.#locks = locks;
    this.#connection = connect((state) => {
      for (const port of this.#pages.keys()) this.#post(port, { type: 'state', state });
    });
    setInterval(() => this.#ping(), PING_MS);
  }

  attach(port: Port): void {
    port.onmessage = (event) => this.#receive(port, event.data as PageMessage);
  }

  #receive(port: Port, message: PageMessage): void {
    if (message.type === 'open') {
      this.#open(port);
      return;
    }
    const page = this.#pages.get(port);
    if (!page) {
      this.#post(port, { type: 'unknown' });
      return;
    }
    page.missedPings = 0;
    switch (message.type) {
      case 'subscribe': {
        const unsubscribe = this.#connection.subscribe(message.topic, message.after, {
          frames: (frames) => this.#post(port, { type: 'frames', key: message.key, frames }),
          reset: () => this.#post(port, { type: 'reset', key: message.key }),
        });
        page.subscriptions.set(message.key, unsubscribe);
        return;
      }
      case 'unsubscribe':
        page.subscriptions.get(message.key)?.();
        page.subscriptions.delete(message.key);
        return;
      case 'lock':
        if (!this.#locks || page.holdsLock) return;
        page.holdsLock = true;
        // Granted only when the page is gone.
        this.#locks.request(message.name, () => this.#forget(port)).catch(() => {});
        return;
      case 'wake':
        this.#connection.wake();
        return;
      case 'doubt':
        this.#connection.doubt();
        return;
      case 'close':
        this.#forget(port);
        return;
    }
  }

  #open(port: Port): void {
    this.#forget(port);
    this.#pages.set(port, { subscriptions: new Map(), missedPings: 0, holdsLock: false });
    this.#post(port, { type: 'state', state: this.#connection.state });
  }

  #forget(port: Port): void {
    const page = this.#pages.get(port);
    if (!page) return;
    this.#pages.delete(port);
    for (const unsubscribe of page.subscriptions.values()) unsubscribe();
  }

  #ping(): void {
    for (const [port, page] of this.#pages) {
      if (page.holdsLock) continue;
      page.missedPings += 1;
      if (page.missedPings > MISSED_PINGS) this.#forget(port);
      else this.#post(port, { type: 'ping' });
    }
  }

  #post(port: Port, message: HubMessage): void {
    port.postMessage(message);
  }
}
