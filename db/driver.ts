import type { Database } from './client';
import type { Damage } from './damage';
import type { DatabaseFile } from './database-file';
import type { Reader } from './reader';
import type { TransactionSource } from './write-queue';
import type { Writes } from './writes';

/** A database as its driver gives it, of whichever kind. */
export interface Driver {
  reader: Reader;
  tail: Reader;
  /** For migrations. */
  transactions: TransactionSource;
  writesTo(damage: Damage): Writes;
  /** Null for a server, which has no file to look at. */
  file: DatabaseFile | null;
  /** The file's path; null for a server. */
  path: string | null;
  follow: Database['follow'];
  lease: Database['lease'];
  /** From here on, the file that is there must stay in place. */
  settle(): Promise<void>;
  /** Copies the log into the file itself. Never rejects. */
  checkpoint(): Promise<void>;
  /** Checks the whole file; null for a server. */
  isWhole: (() => Promise<boolean>) | null;
  close(): void;
}
