import type { Position } from '@interlude/protocol/position';
import type { ConnectionState } from './connection-state';
import type { RowFrame } from './row-frame';

/** Messages from a page to the hub. `key` is the page's number for a subscription. */
export type PageMessage =
  | { type: 'open' }
  /** Name of a Web Lock that the page holds while it is open. */
  | { type: 'lock'; name: string }
  | { type: 'subscribe'; key: number; topic: string; after: Position }
  | { type: 'unsubscribe'; key: number }
  | { type: 'wake' }
  | { type: 'doubt' }
  | { type: 'pong' }
  | { type: 'close' };

/** Messages from the hub to a page. */
export type HubMessage =
  | { type: 'state'; state: ConnectionState }
  | { type: 'frames'; key: number; frames: RowFrame[] }
  | { type: 'reset'; key: number }
  | { type: 'ping' }
  /** The hub had dropped this page: open and subscribe again. */
  | { type: 'unknown' };

/** The part of MessagePort that both sides use. */
export interface Port {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent) => void) | null;
  close(): void;
}
