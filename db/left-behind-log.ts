import { randomUUID } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * SQLite keeps the newest commits in a log beside a database (`-wal`) and applies at the next start whatever stands
 * there: to a backup that was put in the place of the file, too, which that spoils. So it is noted which two files belong
 * together, and a log that another database has left behind is set aside before anything is opened.
 *
 * Ordering: the note is written before the first commit can be, so that a log which holds one is never one of an older
 * note.
 * Failure: nothing is deleted. Where the note does not fit (none yet, a folder that was copied or mounted elsewhere, a
 * file system that numbers its files anew) the log counts as the database's own, as SQLite has it. A copy that was
 * written into the very file (`cp`) can't be told from it.
 *
 * @see https://sqlite.org/howtocorrupt.html 1.4
 */
interface Note {
  folder: Identity;
  database: Identity;
  /** Null while there was none. */
  log: Identity | null;
  /** Another program has cut it short: what is left of it is older than what the database has taken over of it. */
  isLogCut: boolean;
}

/** What a file is known by across restarts: no name, no content, and no device, whose number may be another every time. */
interface Identity {
  inode: string;
  bornAt: string;
}

/** Sets the log beside the database aside when it is none of its own, and says so. To be called before it is opened. */
export async function setAsideForeignLog(path: string): Promise<void> {
  // in this order: there is no log with anything in it before the database has its first page
  const log = await look(`${path}-wal`);
  if (log === null || log.size === 0n) return;
  const database = await look(path);
  const reason = database === null || database.size === 0n ? 'gone' : await reasonOf(path, database, log);
  if (reason === null) return;
  const mark = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const aside = `${path}-wal-set-aside-${mark}`;
  await rename(`${path}-wal`, aside);
  await rename(`${path}-shm`, `${path}-shm-set-aside-${mark}`).catch(ignoreMissing);
  console.error(`[interlude] ${REASONS[reason](path)} and was set aside as ${aside}. ${NEXT_STEP}`);
}

/** Notes which files stand there now as those that belong together. To be called before anything is written into them. */
export async function noteFiles(path: string, isLogCut = false): Promise<void> {
  const [folder, database, log] = await Promise.all([look(dirname(path)), look(path), look(`${path}-wal`)]);
  if (folder === null || database === null) return;
  const identified = { folder: identityOf(folder), database: identityOf(database), log: log && identityOf(log) };
  const text = `${JSON.stringify({ ...identified, isLogCut } satisfies Note)}\n`;
  const name = noteOf(path);
  if ((await readFile(name, 'utf8').catch(() => null)) === text) return;
  // whole or not at all
  const draft = `${name}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode: 0o600 });
    await rename(draft, name);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

type Reason = 'gone' | 'replaced' | 'cut';

const REASONS: Record<Reason, (path: string) => string> = {
  gone: (path) => `${path} is gone; the log ${path}-wal, which was its own, would go with it`,
  replaced: (path) =>
    `${path} is another file than the one that was open last; the log ${path}-wal belongs to that one, would spoil this one,`,
  cut: (path) => `the log ${path}-wal was cut short by another program, would spoil the database`,
};

const NEXT_STEP =
  'It holds what was stored last and not yet taken over into the old file: remove it once nothing of that is missed.';

async function reasonOf(path: string, database: BigIntStats, log: BigIntStats): Promise<Reason | null> {
  const [note, folder] = await Promise.all([readNote(path), look(dirname(path))]);
  if (note?.log == null || folder === null) return null;
  if (!isSame(note.folder, folder) || !isSame(note.log, log)) return null;
  if (!isSame(note.database, database)) return 'replaced';
  return note.isLogCut ? 'cut' : null;
}

const noteOf = (path: string) => `${path}-opened`;

async function readNote(path: string): Promise<Note | null> {
  try {
    const { folder, database, log, isLogCut } = JSON.parse(await readFile(noteOf(path), 'utf8')) as Partial<Note>;
    return folder && database ? { folder, database, log: log ?? null, isLogCut: isLogCut === true } : null;
  } catch {
    return null;
  }
}

function identityOf({ ino, birthtimeNs }: BigIntStats): Identity {
  return { inode: String(ino), bornAt: String(birthtimeNs) };
}

/** The number of a file that was deleted may go to the next one, so its birth counts, where the system knows it. */
function isSame(known: Identity, found: BigIntStats): boolean {
  const { inode, bornAt } = identityOf(found);
  const isBirthKnown = found.birthtimeNs !== found.ctimeNs;
  return inode === known.inode && (bornAt === known.bornAt || !isBirthKnown);
}

async function look(path: string): Promise<BigIntStats | null> {
  return stat(path, { bigint: true }).catch(ignoreMissing);
}

function ignoreMissing(error: { code?: string }): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
