import type { Database } from '@/db/client';
import { pause, Yielder, yieldToLoop } from '@/db/yield-to-loop';
import { PLAIN_DIGESTS, type ShownDigests } from '@/lib/server/access/shown-digests';
import {
  type Bounds,
  type Row,
  type RowLimits,
  readAfter,
  replayAfterPage,
  replayFrom,
  type TopicFilter,
} from '@/lib/server/event-log/read-after';
import { isRemovedAfter, type RowRedactor, rowFrame, withDigests } from './encode-row';
import { encodeText, type Subscriber } from './subscriber';
import type { Tailer } from './tailer';

/** Pause before a retry, because a replica may lag behind this process's tailer. */
const REPLICA_PAUSE_MS = 20;

/**
 * Brings a subscriber from `after` to the live edge: reads pages from the database as fast as the reader drains them,
 * then switches to ticks, without missing or repeating a row.
 *
 * ```
 *  reader    pages ──────►│last page│
 *  tailer    ───── ticks ─┼─ held ──┼─► live
 *                   tailer.position ≤ page.upTo: no gap; overlap is cut off by position
 * ```
 *
 * Ordering: the subscriber joins the broadcast before its first page is read. Ticks are held while a page is read. If
 * the page's snapshot is at least as new as the tailer's position at the start of the read, no row lies between the
 * page and the held ticks.
 *
 * Each page is a separate snapshot. With one bound for all pages, deltas below the bound could fold into a row above it
 * that the tailer has already passed. With separate snapshots, the whole text lies ahead of every reader that lacks
 * some of its deltas.
 *
 * Retention may remove turns and fleet rows between two pages. The server ends a reader that may have received some of
 * them, and the reader resumes with a gap.
 *
 * Failure: a database error ends the stream. The client resumes from its last row.
 *
 * @param start position of the reader, and the bounds at the time it was allowed to resume
 * @param client queue among the heavy reads in which each page waits
 * @param redactor for a subscriber without access to secrets
 */
export async function catchUp(
  subscriber: Subscriber,
  database: Database,
  tailer: Tailer,
  filter: TopicFilter,
  start: Pick<Bounds, 'newest' | 'removedUpTo'> & { after: number },
  limits: RowLimits,
  client: string,
  redactor: RowRedactor | null = null,
  digests: ShownDigests = PLAIN_DIGESTS,
): Promise<void> {
  const { after, newest, removedUpTo } = start;
  let position = after;
  let shown = after;
  let replay = replayFrom(after);
  // `resume` has already accounted for everything removed before this point.
  const knownRemoved = Math.max(after, removedUpTo);
  const readPage = async (): Promise<'joined' | 'reading' | 'waiting'> => {
    if (subscriber.isEnded) return 'joined';
    // A tick that is already being read does not include this subscriber's topics.
    await tailer.idle();
    subscriber.hold();
    const mustReach = tailer.position;
    const page = await readAfter(database, filter, position, replay, limits);
    if (subscriber.isEnded) return 'joined';
    const isMissed = filter.fleet && page.removedUpTo > knownRemoved;
    if (isMissed || page.rows.some((row) => row.position > newest && isRemovedAfter(row, after))) {
      subscriber.close('planned');
      return 'joined';
    }
    replay = replayAfterPage(replay, page);
    position = page.upTo;
    await sendRows(subscriber, page.rows, redactor, digests);
    // The counter would reveal to a scoped reader how busy other agents are.
    shown = filter.scope.kind === 'everything' ? position : Math.max(shown, page.rows.at(-1)?.position ?? 0);
    // The next page reads the row that now holds a folded row's text. A tick would only send its own part of the text.
    const isBehind = redactor?.takeMissed() === true;
    if (page.complete && position >= mustReach && !isBehind) {
      subscriber.join(position, shown);
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

/** Approximate bytes of a chunk, which is built and written to the socket on the event loop. */
const CHUNK_LENGTH = 256 * 1024;

/** Yields to the event loop between the chunks of a page. */
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
    await yielder.yieldIfDue();
  }
}
