import type { Database } from '@/db/client';
import { pause, Yielder, yieldToLoop } from '@/db/yield-to-loop';
import { PLAIN_DIGESTS, type ShownDigests } from '@/lib/server/access/shown-digests';
import type { Row, RowLimits } from '@/lib/server/event-log/read-after';
import { type Bounds, readAfter, replayBehind, replayFrom, type TopicFilter } from '@/lib/server/event-log/read-after';
import type { RowRedactor } from './row-frame';
import { isRemovedAfter, rowFrame, withDigests } from './row-frame';
import type { Subscriber } from './subscriber';
import { encodeText } from './subscriber';
import type { Tailer } from './tailer';

/** A replica may lag behind our own tailer; asking again at once would not help. */
const REPLICA_PAUSE_MS = 20;

/**
 * Brings a subscriber from `after` to the live edge: page by page from the database, as fast as it reads, and then over
 * to ticks, with no row missing or repeated.
 *
 * Ordering: the subscriber is in the broadcast before the first page is read. A page whose snapshot is at least as new
 * as the tailer's position when the read began leaves no row between it and the ticks held meanwhile; what overlaps is
 * cut off by position.
 *
 * Each page is a snapshot of its own, never one bound for all. Deltas fold while we read: had the bound been fixed at
 * the start, deltas this side of it could vanish before their page came, into a row beyond it that the tailer has
 * already passed. Read this way, the whole text stands ahead of every reader that has not all of its deltas.
 *
 * Turns may be removed between two pages, and rows of the fleet. A reader that might have been told a part of them is
 * ended, and resumes.
 *
 * @param start where the reader stands, and what bounds there were when that could be resumed
 * @param client who is waiting: each page takes its turn among all heavy reads
 * @param redactor of a subscriber that is told no secrets
 * @param digests as the subscriber sees them
 *
 * Failure: what the database throws ends the stream; the client resumes from the last row it has.
 */
export async function catchUp(
  subscriber: Subscriber,
  database: Database,
  tailer: Tailer,
  wanted: TopicFilter,
  start: Pick<Bounds, 'newest' | 'removedUpTo'> & { after: number },
  limits: RowLimits,
  client: string,
  redactor: RowRedactor | null = null,
  digests: ShownDigests = PLAIN_DIGESTS,
): Promise<void> {
  const { after, newest, removedUpTo } = start;
  let position = after;
  let told = after;
  let replay = replayFrom(after);
  // where it begins, all that was removed by then has been dealt with
  const knownRemoved = Math.max(after, removedUpTo);
  const readPage = async (): Promise<'joined' | 'reading' | 'waiting'> => {
    if (subscriber.isEnded) return 'joined';
    // A tick that is being read now does not know this subscriber's topics yet.
    await tailer.idle();
    subscriber.hold();
    const mustReach = tailer.position;
    const page = await readAfter(database, wanted, position, replay, limits);
    if (subscriber.isEnded) return 'joined';
    const isMissed = wanted.fleet && page.removedUpTo > knownRemoved;
    if (isMissed || page.rows.some((row) => row.position > newest && isRemovedAfter(row, after))) {
      subscriber.close('planned');
      return 'joined';
    }
    replay = replayBehind(replay, page);
    position = page.upTo;
    await sendRows(subscriber, page.rows, redactor, digests);
    // to a reader with a scope, the counter would tell how busy others are
    told = wanted.scope.kind === 'everything' ? position : Math.max(told, page.rows.at(-1)?.position ?? 0);
    // A folded row's text is in a later row. The next page reads that row; a tick would send only its own part.
    const isBehind = redactor?.takeMissed() === true;
    if (page.complete && position >= mustReach && !isBehind) {
      subscriber.join(position, told);
      return 'joined';
    }
    subscriber.release();
    return page.complete && !isBehind ? 'waiting' : 'reading';
  };
  while (!subscriber.isEnded) {
    const outcome = await database.reads.run(client, readPage, { continues: true });
    if (outcome === 'joined') return;
    await subscriber.room();
    await (outcome === 'waiting' ? pause(REPLICA_PAUSE_MS) : yieldToLoop());
  }
}

/** Approximate size of one chunk: it is built, and written to the socket, on the event loop. */
const CHUNK_LENGTH = 256 * 1024;

/** Everybody else gets a turn between the chunks of a page. */
async function sendRows(
  subscriber: Subscriber,
  rows: readonly Row[],
  redactor: RowRedactor | null,
  digests: ShownDigests,
): Promise<void> {
  const yielder = new Yielder();
  let chunk = '';
  for (const [index, row] of rows.entries()) {
    chunk += withDigests(redactor === null ? rowFrame(row) : await redactor.frame(row), row, digests);
    if (chunk.length < CHUNK_LENGTH && !yielder.isDue && index < rows.length - 1) continue;
    subscriber.send(encodeText(chunk));
    chunk = '';
    await yielder.rest();
  }
}
