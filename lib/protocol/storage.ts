import type { SessionState } from './agent-state';

/** How large the database is, what of it takes the room, and what is kept. Of all that is stored, whoever asks. */
export interface Storage extends StorageSizes {
  retention: RetentionRules;
}

/** How long what has happened is kept, as the server is set. What is open stays, however old it is. */
export interface RetentionRules {
  /** Days from when a turn was received, by the state of its session. Null is for ever. */
  days: Record<SessionState, number | null>;
  /** The same for what is of no session. */
  elsewhereDays: number | null;
  /** Days from when an entry of the audit was written. Null is for ever. */
  auditDays: number | null;
  /** Most bytes of the database, without the free ones: the oldest turns go first. Null is any size. */
  maxBytes: number | null;
  logs: LogRetentionRules;
}

/** How much of each agent's log is kept. */
export interface LogRetentionRules {
  /** From when a line was received. */
  days: number;
  /** Most bytes of messages. */
  maxBytes: number;
}

export interface StorageSizes {
  /** When the numbers were taken: they are kept for a while, and taken table by table. */
  at: number;
  bytes: number;
  /** What was removed, and is used again before the database grows. */
  freeBytes: number;
  /**
   * Where the parts come from: `measured`, page by page; or `estimated` from samples of the rows, so that only their sum is
   * exact, where the database can't tell.
   */
  method: 'measured' | 'estimated';
  /** The largest first. Their sum and the free space are the whole. */
  parts: StoragePart[];
}

export interface StoragePart {
  name: StoragePartName;
  bytes: number;
  /** The largest first. */
  tables: StorageTable[];
}

export interface StorageTable {
  name: string;
  /** With its indexes. */
  bytes: number;
  /** What of it the indexes take; null where that is not known. */
  indexBytes: number | null;
}

export const STORAGE_PARTS = [
  'events',
  'views',
  'logs',
  'search',
  'commands',
  'attachments',
  'audit',
  'quarantine',
  'insights',
  'webhooks',
  'access',
  'rest',
] as const;

export type StoragePartName = (typeof STORAGE_PARTS)[number];
