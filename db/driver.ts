import type { Database } from './client';
import type { Damage } from './damage';
import type { DatabaseFile } from './database-file';
import type { Reader } from './reader';
import type { TransactionSource } from './write-queue';
import type { Writes } from './writes';

/** A database of either kind, as opened. */
export interface Driver {
  reader: Reader;
  tail: Reader;
  /** For migrations. */
  transactions: TransactionSource;
  writesTo(damage: Damage): Writes;
  /** Null for a server. */
  file: DatabaseFile | null;
  /** Path of the file; null for a server. */
  path: string | null;
  follow: Database['follow'];
  lease: Database['lease'];
  /** From here on, the file must stay in place. */
  settle(): Promise<void>;
  /** Copies the log into the file. Never rejects. */
  checkpoint(): Promise<void>;
  /** Checks the whole file; null for a server. */
  isIntact: (() => Promise<boolean>) | null;
  close(): void;
}
