import { statSync } from 'node:fs';
import { CliError, EXIT, type ExitCode, print } from '@interlude/runner/cli/command';
import { interludeCommand } from '@interlude/runner/host/own-program.mjs';
import { retryWhileBusy } from '@/db/database-error';
import type { LocalConnection } from '@/db/local-connection';
import { pause } from '@/db/yield-to-loop';
import { type DatabaseLocation, locationName, openFile } from './database-location';
import { formatBytes, formatDuration, Progress } from './progress';

/** Maximum milliseconds for which a piece may block writers, and the pause after it as a multiple of its time. */
const PIECE_MS = 20;
const PAUSE_SHARE = 2;
const FIRST_PIECE_PAGES = 64;
/** Stops after this many pieces without progress. One is normal while the dashboard frees pages. */
const MAX_STALLED_PIECES = 20;
/** Retry limit while writers or readers hold locks. */
const BUSY_MS = 10_000;
/** `PRAGMA auto_vacuum` value that allows incremental vacuum. */
const INCREMENTAL = 2;

/**
 * Returns a file's free space to the disk.
 *
 * Incremental: short write transactions with pauses for the dashboard. A file without incremental vacuum needs one full
 * rewrite (`full`), which blocks writers: a write waits for up to five seconds, then fails and must be retried.
 * Acknowledged data is safe either way, and readers continue.
 */
export async function vacuum(place: DatabaseLocation, { full }: { full: boolean }): Promise<ExitCode> {
  if (place.kind === 'server') throw atServer(place);
  const connection = await openFile(place);
  const startedAt = performance.now();
  try {
    const before = await spaceOf(connection);
    if (full) await rewrite(connection);
    else if (before.autoVacuum !== INCREMENTAL) throw notIncremental(place, before);
    else await vacuumInPieces(connection, before.free);
    await shrinkFile(connection);
    const after = await spaceOf(connection);
    const left = after.free === 0 ? '' : `, ${formatBytes(after.free * after.pageBytes)} of it still free`;
    print(
      `${locationName(place)}: ${formatBytes(before.bytes)} before, ${formatBytes(after.bytes)} now${left}; ${formatDuration(performance.now() - startedAt)}`,
    );
    const onDisk = statSync(place.path).size;
    if (onDisk > after.bytes) print(`The file keeps ${formatBytes(onDisk)} until its current readers finish.`);
    return EXIT.done;
  } finally {
    connection.close();
  }
}

async function rewrite(connection: LocalConnection): Promise<void> {
  // the pragma writes to the file even if it is already set
  for (const sql of ['PRAGMA auto_vacuum = INCREMENTAL', 'VACUUM'])
    await retryWhileBusy(() => connection.run(sql, 'thread'), BUSY_MS);
}

async function vacuumInPieces(connection: LocalConnection, free: number): Promise<void> {
  const progress = new Progress();
  let [pages, left, bytes, stalled] = [FIRST_PIECE_PAGES, free, Number.POSITIVE_INFINITY, 0];
  try {
    while (left > 0 && stalled < MAX_STALLED_PIECES) {
      const startedAt = performance.now();
      await retryWhileBusy(() => connection.run(`PRAGMA incremental_vacuum(${pages})`, 'thread'), BUSY_MS);
      const tookMs = performance.now() - startedAt;
      const now = await spaceOf(connection);
      progress.report(
        () =>
          `${Math.max(0, free - now.free).toLocaleString('en')} of ${free.toLocaleString('en')} free pages returned`,
      );
      // By the file's size: the dashboard may free more pages meanwhile than a piece returns.
      stalled = now.bytes < bytes ? 0 : stalled + 1;
      [left, bytes] = [now.free, now.bytes];
      pages = Math.max(1, Math.min(pages * 2, Math.round((pages * PIECE_MS) / Math.max(tookMs, 1))));
      await pause(PIECE_MS + tookMs * PAUSE_SHARE);
    }
  } finally {
    progress.clear();
  }
}

/** The file only shrinks once the WAL is checkpointed, which active readers may delay. */
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

function notIncremental(place: DatabaseLocation, { free, pageBytes, bytes }: Space): CliError {
  const command = interludeCommand(['db', 'vacuum', '--full']);
  return new CliError(
    EXIT.failed,
    `${locationName(place)} was created by a version without incremental vacuum (${formatBytes(free * pageBytes)} of ${formatBytes(bytes)} are free); run "${command}" once, preferably with the dashboard stopped, because it blocks writers`,
  );
}

function atServer(place: DatabaseLocation): CliError {
  return new CliError(
    EXIT.failed,
    `a libSQL server can't be vacuumed (${locationName(place)}); it reuses free space. For a smaller database, stop the dashboards, copy to a new one with "${interludeCommand(['db', 'copy'])}", and point them at it`,
  );
}
