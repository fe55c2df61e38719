import type { Damage } from './damage';
import type { DatabaseFile } from './database-file';
import type { Lease } from './lease';
import type { Reader } from './reader';
import type { TransactionSource } from './write-queue';
import type { Writes } from './writes';

export interface DatabaseOptions {
  /** `file:///…`, or `libsql://…` or `https://…` for a libSQL server. */
  url: string;
  authToken?: string;
  /** Migrates the schema first. Default: true for a file, false for a server. */
  migrates?: boolean;
  /** This process has already checked the schema. */
  isKnown?: boolean;
  /** Serves a single request, which must not wait for other requests' writes. */
  isAlone?: boolean;
}

/** An opened file or server. */
export interface Driver {
  reader: Reader;
  /** Runs small, urgent reads. On a local file they run on the event loop. */
  tail: Reader;
  /** For migrations. */
  transactions: TransactionSource;
  writesTo(damage: Damage): Writes;
  /** Null for a server. */
  file: DatabaseFile | null;
  /** Path of the file; null for a server. */
  path: string | null;
  /**
   * Calls back after commits of other processes: immediately on a server, every `pollMs` on a file. Some calls are
   * spurious, such as the first one on a server. All followers of a server share one request.
   *
   * @returns a function that stops the calls
   */
  follow(onMove: () => void, pollMs: number): () => void;
  /** Each call returns a new lease. */
  lease(work: string): Lease;
  /** Records the file's identity. From then on the file must stay in place. */
  settle(): Promise<void>;
  /** Checkpoints the log into the file. Never rejects. */
  checkpoint(): Promise<void>;
  /** Checks the whole file for damage; null for a server. */
  isIntact: (() => Promise<boolean>) | null;
  close(): void;
}
