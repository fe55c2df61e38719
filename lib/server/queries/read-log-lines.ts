import { positionFromNumber, positionToNumber } from '@interlude/protocol/position';
import { EVERY_LINE, type LogFilter } from '@interlude/protocol/projections/log-filter';
import type { LogPage } from '@interlude/protocol/read-models';
import { columnText } from '@/db/table-rows';
import type { Sight } from '@/lib/server/access/sight';
import { agentKnown } from './agent-known';
import { readLinePosition } from './log-chunks';
import { NO_LOG, selectExtent } from './log-extent';
import { readTogether } from './read-together';
import { type LogScan, type ScanRange, scanLog } from './scan-log';

/** Which page: the newest one, the one before or after a line, or the one around a line, its number or a time. */
export type LogPlace =
  | { kind: 'newest' }
  | { kind: 'before' | 'after' | 'around'; position: number }
  | { kind: 'line'; line: number }
  | { kind: 'at'; at: number };

export interface LogRequest {
  filter: LogFilter;
  place: LogPlace;
  /** Most lines. */
  limit: number;
}

export interface LogPageLimits {
  /** Most bytes of a page's messages, give or take one line. */
  bytes: number;
  /** Milliseconds that one search may keep the event loop busy before it answers with what it has. */
  searchMs: number;
}

const LIMITS: LogPageLimits = { bytes: 1024 * 1024, searchMs: 200 };

/**
 * A page of an agent's log in ascending order.
 *
 * @returns null when there is no such agent
 */
export async function readLogLines(
  sight: Sight,
  agentId: string,
  { filter, place, limit }: LogRequest,
  limits: LogPageLimits = LIMITS,
): Promise<LogPage | null> {
  const { reader } = sight;
  const id = columnText(agentId);
  const { position, found } = await readTogether(sight, [agentKnown(sight, id), selectExtent(id)]);
  const [agent, [log = NO_LOG]] = found;
  if (agent.length === 0) return null;
  const head = { position, log };
  const newest = positionToNumber(position);
  const scan = async (direction: ScanRange['direction'], edge: number, most: number, share = 1) => {
    const [bytes, budgetMs] = [limits.bytes * share, limits.searchMs * share];
    // one more than wanted shows whether there are more
    const range = { direction, edge, newest, limit: most + 1, bytes, budgetMs };
    return part(await scanLog(sight, id, filter, range), most);
  };

  if (place.kind === 'after') {
    const { lines, hasMore, searchedTo } = await scan('newer', place.position, limit);
    return { ...head, hasMore, hasNewer: hasMore, lines, ...searchedTo };
  }
  if (place.kind === 'newest' || place.kind === 'before') {
    const edge = place.kind === 'before' ? Math.min(place.position, newest + 1) : newest + 1;
    const { lines, hasMore, searchedTo } = await scan('older', edge, limit);
    return { ...head, hasMore, hasNewer: edge <= newest, lines: lines.reverse(), ...searchedTo };
  }
  const middle = (await middleOf(place)) ?? newest + 1;
  const newer = await scan('newer', middle - 1, limit - (limit >> 1), 0.5);
  const older = await scan('older', middle, limit - newer.lines.length, 0.5);
  return {
    ...head,
    hasMore: older.hasMore,
    hasNewer: newer.hasMore,
    lines: [...older.lines.reverse(), ...newer.lines],
    ...older.searchedTo,
  };

  /** Null when all lines are older. */
  async function middleOf(place: Exclude<LogPlace, { kind: 'newest' }>): Promise<number | null> {
    if (place.kind === 'line') return readLinePosition(reader, id, place.line);
    return place.kind === 'at' ? positionAt(place.at) : place.position;
  }

  /** The position of the first line at a time or later. */
  async function positionAt(at: number): Promise<number | null> {
    const range = { direction: 'newer', edge: 0, newest, limit: 1, bytes: 1, budgetMs: Infinity } as const;
    const { lines } = await scanLog(sight, id, { ...EVERY_LINE, from: at }, range);
    return lines[0] === undefined ? null : positionToNumber(lines[0].position);
  }
}

function part({ lines, end, searchedTo }: LogScan, most: number) {
  return {
    lines: lines.slice(0, most),
    hasMore: end !== 'log',
    searchedTo: end === 'time' ? { searchedTo: positionFromNumber(searchedTo) } : {},
  };
}
