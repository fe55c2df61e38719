import { randomUUID } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { serverLog } from '@interlude/protocol/server-log.mjs';

/**
 * SQLite keeps the newest commits in a log beside the database (`-wal`) and at the next start applies whatever log it
 * finds there. If the file was replaced by a backup meanwhile, that spoils the backup. So a note says which two files
 * belong together, and a log left behind by another database is set aside before anything is opened.
 *
 * Ordering: the note is written before the first commit, so an older note never describes a log that has commits in it.
 * Failure: nothing is deleted. If the note does not apply (there is none yet, the folder was copied or mounted
 * elsewhere, the file system renumbers its files) the log counts as the database's own, as it does for SQLite. A backup
 * that was copied into the same file (`cp`) can't be told from the original.
 *
 * @see https://sqlite.org/howtocorrupt.html 1.4
 */
interface Note {
  folder: Identity;
  database: Identity;
  /** Null if there was none. */
  log: Identity | null;
  /** Another program has cut it short: what is left is older than what the database has already taken from it. */
  isLogCut: boolean;
}

const LEFT_MS = 60_000;

/** What identifies a file across restarts: not its name, content or device, whose number may change each time. */
interface Identity {
  inode: string;
  bornAt: string;
}

/** Sets aside a log that is not the database's own, and says so. Call before the database is opened. */
export async function setAsideForeignLog(path: string): Promise<void> {
  // in this order: a log has no content before the database has its first page
  const log = await look(`${path}-wal`);
  if (log === null || log.size === 0n) return;
  const database = await look(path);
  const reason = database === null || database.size === 0n ? 'gone' : await reasonOf(path, database, log);
  if (reason === null) return;
  const mark = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const aside = `${path}-wal-set-aside-${mark}`;
  await rename(`${path}-wal`, aside);
  await rename(`${path}-shm`, `${path}-shm-set-aside-${mark}`).catch(ignoreMissing);
  serverLog('warn', `${REASONS[reason](path)} and was set aside as ${aside}. ${NEXT_STEP}`);
}

/** Notes that the files there now belong together. Call before anything is written to them. */
export async function noteFiles(path: string, isLogCut = false): Promise<void> {
  const [folder, database, log] = await Promise.all([look(dirname(path)), look(path), look(`${path}-wal`)]);
  if (folder === null || database === null) return;
  const identified = { folder: identityOf(folder), database: identityOf(database), log: log && identityOf(log) };
  const text = `${JSON.stringify({ ...identified, isLogCut } satisfies Note)}\n`;
  const name = noteOf(path);
  if ((await readFile(name, 'utf8').catch(() => null)) === text) return;
  // all of the note or nothing
  await removeLeft(name);
  const draft = `${name}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode: 0o600 });
    await rename(draft, name);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Drafts of a note whose writer was killed: writing one takes no time. */
async function removeLeft(note: string): Promise<void> {
  for (const name of await readdir(dirname(note))) {
    if (!name.startsWith(`${basename(note)}.`)) continue;
    const draft = join(dirname(note), name);
    const found = await stat(draft).catch(() => null);
    if (found !== null && Date.now() - found.mtimeMs > LEFT_MS) await rm(draft, { force: true });
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

/** A deleted file's number may be reused, so its birth time counts too, if the system knows it. */
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
