import { statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { MAX_RECORD_BYTES } from '@/lib/protocol/limits';

/**
 * The file a database was opened as. SQLite goes on writing to a file that was deleted or replaced under it, and all of
 * that is gone when the process ends: only a look at the path tells.
 */
export class DatabaseFile {
  readonly #path: string;
  /** By path, what stood there when it was first seen: the database, and the log SQLite keeps beside it. */
  readonly #known = new Map<string, string>();

  constructor(path: string) {
    this.#path = path;
  }

  /** @returns what is wrong, as the end of a sentence about the database; null when nothing is */
  async trouble(): Promise<string | null> {
    const moved = this.moved();
    if (moved !== null) return moved;
    const { bavail, bsize } = await statfs(dirname(this.#path));
    return bavail * bsize < MAX_RECORD_BYTES ? 'its disk is full' : null;
  }

  /** The file is the one it was, and only the log beside it is gone: what that held is still to be had from this process. */
  lacksOnlyItsLog(): boolean {
    const known = this.#known.get(this.#path);
    return known !== undefined && known === identityOf(this.#path) && identityOf(`${this.#path}-wal`) === null;
  }

  /** As `trouble`, but only of what stands at the path. It takes microseconds, so it is asked before every commit. */
  moved(): string | null {
    for (const path of [this.#path, `${this.#path}-wal`]) {
      const known = this.#known.get(path);
      const now = identityOf(path);
      if (known === undefined && now !== null) this.#known.set(path, now);
      if (known !== undefined && now === null) return `its file ${path} was deleted`;
      if (known !== undefined && now !== known) return `its file ${path} was replaced by another`;
    }
    return null;
  }
}

function identityOf(path: string): string | null {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev} ${found.ino}`;
}
