import { AppError, brokenOff } from '@interlude/protocol/errors';
import { positionToNumber } from '@interlude/protocol/position';
import type { LogFilter } from '@interlude/protocol/projections/log-filter';
import { redactLine } from '@interlude/protocol/redaction/redact-model';
import { columnText } from '@/db/table-rows';
import type { Sight } from '@/lib/server/access/sight';
import { agentKnown } from './agent-known';
import { textLine } from './log-text-line';
import { readTogether } from './read-together';
import { scanLog } from './scan-log';

/** Limit of one read: what one download holds in memory. */
const LINES_OF_A_CHUNK = 500;
const BYTES_OF_A_CHUNK = 256 * 1024;
/** Nothing is read between two pulls; within one, reading takes at most this long before the lines found are sent. */
const BUDGET_MS = 200;

/**
 * The lines that pass a filter, oldest first, as the runner writes them to its file. Lines that arrive meanwhile are
 * not included.
 *
 * Failure: a database error breaks the stream, so that the download fails instead of just ending.
 *
 * @param client who is waiting, in line with others
 * @returns null when there is no such agent
 */
export async function downloadLog(
  sight: Sight,
  agentId: string,
  filter: LogFilter,
  client: string,
): Promise<ReadableStream<Uint8Array> | null> {
  const { reads } = sight;
  const id = columnText(agentId);
  const { position, found } = await readTogether(sight, [agentKnown(sight, id)]);
  if (found[0].length === 0) return null;
  const newest = positionToNumber(position);
  const encoder = new TextEncoder();
  let edge = 0;
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const range = { newest, limit: LINES_OF_A_CHUNK, bytes: BYTES_OF_A_CHUNK, budgetMs: BUDGET_MS };
        const scan = () => scanLog(sight, id, filter, { direction: 'newer', edge, ...range });
        const { lines, end, searchedTo } = await reads.run(client, scan, { continues: true }).catch((error) => {
          // database failures are logged elsewhere
          throw error instanceof AppError ? brokenOff(error) : error;
        });
        edge = searchedTo;
        if (lines.length > 0) {
          controller.enqueue(
            encoder.encode(lines.map((line) => `${textLine(sight.redacts ? redactLine(line) : line)}\n`).join('')),
          );
        }
        if (end === 'log') controller.close();
        // the stream does not repeat a pull that enqueued nothing
        if (end === 'log' || lines.length > 0) return;
      }
    },
  });
}
