import { stat } from 'node:fs/promises';
import type { ExitCode } from '@interlude/runner/cli/command';
import { EXIT, print } from '@interlude/runner/cli/command';
import { LocalConnection } from '@/db/local-connection';
import { copyDatabase } from './copy-database';
import { makeNewFile } from './new-file';
import { connectToFile, LOCK_TIMEOUT_MS, nameOf, type Place } from './place';
import { Progress } from './progress';
import { sizeText, timeText } from './sizes';

const LOOK_MS = 200;

/**
 * A copy of the database, of one moment, in a file of its own. Who writes goes on.
 *
 * Of a file it is SQLite's own `VACUUM INTO`. Of a server it is read through one read transaction, page by page, into
 * tables that our migrations make: that works at every libSQL server, where `GET /dump` is sqld's alone and answers SQL,
 * which only a shell that may write the schema can load (the search tables are in it as bare rows).
 */
export async function backup(place: Place, file: string): Promise<ExitCode> {
  const begunAt = performance.now();
  await makeNewFile(file, (draft) => (place.kind === 'file' ? copyFile(place, draft) : copyServer(place, draft)));
  const { size } = await stat(file);
  print(`${file}: ${sizeText(size)} in ${timeText(performance.now() - begunAt)}, a copy of ${nameOf(place)}`);
  return EXIT.done;
}

async function copyFile(place: Place & { kind: 'file' }, draft: string): Promise<void> {
  const connection = await connectToFile(place);
  const progress = new Progress();
  const look = setInterval(async () => {
    const done = await stat(draft).catch(() => null);
    if (done !== null) progress.tell(() => `${sizeText(done.size)} of at most ${sizeText(atMost)}`);
  }, LOOK_MS);
  let atMost = 0;
  try {
    const pages = await connection.execute(
      'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
      'loop',
    );
    atMost = Number(pages.rows[0]?.bytes ?? 0);
    await connection.execute({ sql: 'VACUUM INTO ?', args: [draft] }, 'thread');
  } finally {
    clearInterval(look);
    progress.end();
    connection.close();
  }
  await beginLog(draft);
}

/** Its header says that there is a log, as in the original: else the first start would have to lock it to say so. */
async function beginLog(draft: string): Promise<void> {
  const copy = new LocalConnection(draft, LOCK_TIMEOUT_MS);
  try {
    await copy.run('PRAGMA journal_mode = WAL', 'thread');
  } finally {
    copy.close();
  }
}

async function copyServer(place: Place, draft: string): Promise<void> {
  await copyDatabase(place, { kind: 'file', path: draft }, { isOurDraft: true });
}
