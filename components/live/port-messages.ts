import type { Position } from '@interlude/protocol/position';
import type { ConnectionState } from './connection-state';
import type { RowFrame } from './row-frame';

/** What a page says to the hub that holds the connection. `key` is the page's own number for a subscription. */
export type PageMessage =
  | { type: 'open' }
  /** A Web Lock the page holds for as long as it lives. */
  | { type: 'lock'; name: string }
  | { type: 'subscribe'; key: number; topic: string; after: Position }
  | { type: 'unsubscribe'; key: number }
  | { type: 'wake' }
  | { type: 'doubt' }
  | { type: 'pong' }
  | { type: 'close' };

/** What the hub says to a page. */
export type HubMessage =
  | { type: 'state'; state: ConnectionState }
  | { type: 'frames'; key: number; frames: RowFrame[] }
  | { type: 'reset'; key: number }
  | { type: 'ping' }
  /** The hub had taken this page for dead: open again and subscribe anew. */
  | { type: 'unknown' };

/** The part of a MessagePort both sides use. */
export interface Port {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent) => void) | null;
  close(): void;
}
