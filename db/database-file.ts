import { stat, statfs } from 'node:fs/promises';
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
    for (const path of [this.#path, `${this.#path}-wal`]) {
      const known = this.#known.get(path);
      const now = await identityOf(path);
      if (known === undefined && now !== null) this.#known.set(path, now);
      if (known !== undefined && now === null) return `its file ${path} was deleted`;
      if (known !== undefined && now !== known) return `its file ${path} was replaced by another`;
    }
    const { bavail, bsize } = await statfs(dirname(this.#path));
    return bavail * bsize < MAX_RECORD_BYTES ? 'its disk is full' : null;
  }
}

async function identityOf(path: string): Promise<string | null> {
  const found = await stat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  return found === null ? null : `${found.dev} ${found.ino}`;
}
