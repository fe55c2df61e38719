import { statSync } from 'node:fs';
import { CliError, EXIT, type ExitCode } from '@interlude/runner/cli/exit';
import { print } from '@interlude/runner/cli/table';
import { interludeCommand } from '@interlude/runner/shown-command.mjs';
import { retryWhileBusy } from '@/db/database-error';
import type { LocalConnection } from '@/db/local-connection';
import { pause } from '@/db/yield-to-loop';
import { connectToFile, nameOf, type Place } from './place';
import { Progress } from './progress';
import { sizeText, timeText } from './sizes';

/** How long a piece may keep writers waiting, and how much longer they have for themselves in between. */
const PIECE_MS = 20;
const PAUSE_SHARE = 2;
const FIRST_PIECE_PAGES = 64;
/** As long as somebody writes without end, or reads what is to be moved. */
const BUSY_MS = 10_000;
/** `PRAGMA auto_vacuum`: free pages can be given back without rewriting the file. */
const IN_PIECES = 2;

/**
 * Gives free space of a file back to its disk.
 *
 * In pieces, each a short write transaction: the dashboard writes in between. A file that was made before that was
 * possible must be rewritten once (`full`), which locks writers out as long as it takes: they wait up to five seconds,
 * then are told to send again. Nothing that was acknowledged is lost either way, and readers read on.
 */
export async function vacuum(place: Place, { full }: { full: boolean }): Promise<ExitCode> {
  if (place.kind === 'server') throw atServer(place);
  const connection = await connectToFile(place);
  const begunAt = performance.now();
  try {
    const before = await spaceOf(connection);
    if (full) await rewrite(connection);
    else if (before.autoVacuum !== IN_PIECES) throw notInPieces(place, before);
    else await inPieces(connection, before.free);
    await shrinkFile(connection);
    const after = await spaceOf(connection);
    const left = after.free === 0 ? '' : `, ${sizeText(after.free * after.pageBytes)} of it free still`;
    print(
      `${nameOf(place)}: ${sizeText(before.bytes)} before, ${sizeText(after.bytes)} now${left}; ${timeText(performance.now() - begunAt)}`,
    );
    const onDisk = statSync(place.path).size;
    if (onDisk > after.bytes) print(`The file itself has ${sizeText(onDisk)} until those who read it now are done.`);
    return EXIT.done;
  } finally {
    connection.close();
  }
}

async function rewrite(connection: LocalConnection): Promise<void> {
  // the first writes to the file, too, where it was set already
  for (const sql of ['PRAGMA auto_vacuum = INCREMENTAL', 'VACUUM'])
    await retryWhileBusy(() => connection.run(sql, 'thread'), BUSY_MS);
}

async function inPieces(connection: LocalConnection, free: number): Promise<void> {
  const progress = new Progress();
  let [pages, left] = [FIRST_PIECE_PAGES, free];
  try {
    while (left > 0) {
      const begunAt = performance.now();
      await retryWhileBusy(() => connection.run(`PRAGMA incremental_vacuum(${pages})`, 'thread'), BUSY_MS);
      const tookMs = performance.now() - begunAt;
      const now = (await spaceOf(connection)).free;
      progress.tell(
        () => `${Math.max(0, free - now).toLocaleString('en')} of ${free.toLocaleString('en')} free pages given back`,
      );
      // what the dashboard removes meanwhile is given back, too, but not for ever
      if (now >= left) return;
      left = now;
      pages = Math.max(1, Math.min(pages * 2, Math.round((pages * PIECE_MS) / Math.max(tookMs, 1))));
      await pause(PIECE_MS + tookMs * PAUSE_SHARE);
    }
  } finally {
    progress.end();
  }
}

/** The log must be copied into the file before the file gets shorter. Those who read meanwhile may put that off. */
async function shrinkFile(connection: LocalConnection): Promise<void> {
  for (let tries = 0; tries < 10; tries += 1) {
    const { rows } = await connection.execute('PRAGMA wal_checkpoint(PASSIVE)', 'thread');
    if (Number(rows[0]?.log) === Number(rows[0]?.checkpointed)) return;
    await pause(PIECE_MS * (tries + 1));
  }
}

interface Space {
  pageBytes: number;
  bytes: number;
  /** In pages. */
  free: number;
  autoVacuum: number;
}

async function spaceOf(connection: LocalConnection): Promise<Space> {
  const { rows } = await connection.execute(
    `SELECT page_size, page_count, freelist_count, auto_vacuum
      FROM pragma_page_size, pragma_page_count, pragma_freelist_count, pragma_auto_vacuum`,
    'thread',
  );
  const [row] = rows;
  const pageBytes = Number(row?.page_size);
  return {
    pageBytes,
    bytes: pageBytes * Number(row?.page_count),
    free: Number(row?.freelist_count),
    autoVacuum: Number(row?.auto_vacuum),
  };
}

function notInPieces(place: Place, { free, pageBytes, bytes }: Space): CliError {
  const command = interludeCommand(['db', 'vacuum', '--full']);
  return new CliError(
    EXIT.failed,
    `${nameOf(place)} was made by a version that could not give space back in pieces (${sizeText(free * pageBytes)} of ${sizeText(bytes)} are free); run "${command}" once, best while the dashboard is stopped: writers wait until the file is rewritten`,
  );
}

function atServer(place: Place): CliError {
  return new CliError(
    EXIT.failed,
    `a libSQL server rewrites no database (${nameOf(place)}): what is removed there is used again for what comes. To have a smaller one, stop the dashboards, copy to a new database with "${interludeCommand(['db', 'copy'])}", and point them at that`,
  );
}
