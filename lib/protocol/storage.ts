/** How large the database is, and what of it takes the room. Of all that is stored, whoever asks. */
export interface Storage {
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
