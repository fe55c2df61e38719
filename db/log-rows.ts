import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/log-levels';
import { positionFromNumber } from '@interlude/protocol/position';
import type { LogLine } from '@interlude/protocol/read-models';
import type { Row } from '@libsql/client';
import { logChunks, logLines } from './schema';
import { shapeOf } from './table-rows';

const LINE = shapeOf(logLines, 'position', 'line', 'occurredAt', 'level', 'component', 'message', 'redacted', 'marker');

export const LOG_COLUMNS = `agent_id, ${LINE.columns()}`;

export function logLineFromRow(row: Row): LogLine {
  const { position, redacted, marker, ...line } = LINE.read(row);
  return {
    position: positionFromNumber(position),
    ...line,
    ...(redacted > 0 ? { redacted } : {}),
    ...(marker === null ? {} : { marker }),
  };
}

/**
 * A chunk is a stretch of lines of one agent, indexed as one: it tells whether a line in it may match, never that one
 * does.
 *
 * Ordering: a chunk's id is its agent's number and its first line's, so that the chunks of an agent stand together and
 * in the order of its lines.
 */
export const LOG_CHUNK = shapeOf(logChunks, 'id', 'firstPosition', 'lastPosition');
export type LogChunk = ReturnType<typeof LOG_CHUNK.read>;

/** More lines than any agent writes, and agents than anybody has: 2^53 is the largest safe integer. */
const LINES_OF_AN_AGENT = 2 ** 33;

/** @param agentNumber from 1 */
export function chunkId(agentNumber: number, line: number): number {
  return agentNumber * LINES_OF_AN_AGENT + line;
}

/** One bit per level. */
export function levelBits(levels: readonly LogLevel[]): number {
  return levels.reduce((bits, level) => bits | (1 << LOG_LEVELS.indexOf(level)), 0);
}
