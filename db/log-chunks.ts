import type { Row } from '@libsql/client';
import { LOG_LEVELS, type LogLevel } from '@/lib/protocol/log-levels';

/**
 * A chunk is a stretch of lines of one agent, indexed as one: what it says tells whether a line in it may match, never
 * that one does.
 *
 * Ordering: a chunk's id is its agent's number and its first line's, so that the chunks of an agent stand together and in
 * the order of its lines.
 */
export interface LogChunk {
  id: number;
  firstPosition: number;
  lastPosition: number;
}

/** More lines than any agent writes, and agents than anybody has: 2^53 is the largest safe integer. */
const LINES_OF_AN_AGENT = 2 ** 33;

/** @param agentNumber from 1 */
export function chunkId(agentNumber: number, line: number): number {
  return agentNumber * LINES_OF_AN_AGENT + line;
}

export function chunkFromRow(row: Row): LogChunk {
  return {
    id: Number(row.id),
    firstPosition: Number(row.first_position),
    lastPosition: Number(row.last_position),
  };
}

/** One bit a level. */
export function levelBits(levels: readonly LogLevel[]): number {
  return levels.reduce((bits, level) => bits | (1 << LOG_LEVELS.indexOf(level)), 0);
}
