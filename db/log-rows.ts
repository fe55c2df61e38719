import { positionFromNumber } from '@interlude/protocol/position';
import type { LogLine } from '@interlude/protocol/read-models';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/vocabulary';
import type { Row } from '@libsql/client';
import { logChunks, logLines } from './schema';
import { shapeOf } from './table-rows';

const LINE = shapeOf(logLines, 'position', 'line', 'occurredAt', 'level', 'component', 'message', 'redacted', 'marker');

export const LOG_COLUMNS = `agent_id, ${LINE.columns()}`;

/** @param as alias of the table */
export function logColumns(as: string): string {
  return `${as}.agent_id, ${LINE.columns(as)}`;
}

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
 * A chunk indexes a range of an agent's lines: it can rule out a match in the range, but not prove one.
 *
 * Ordering: a chunk's id combines the agent's number with that of its first line, so an agent's chunks are adjacent
 * and in line order.
 */
export const LOG_CHUNK = shapeOf(logChunks, 'id', 'firstPosition', 'lastPosition');
export type LogChunk = ReturnType<typeof LOG_CHUNK.read>;

/** More lines than any agent writes. The largest safe integer, 2^53, leaves room for a million agents. */
const LINES_OF_AN_AGENT = 2 ** 33;

/** @param agentNumber from 1 */
export function chunkId(agentNumber: number, line: number): number {
  return agentNumber * LINES_OF_AN_AGENT + line;
}

/** One bit per level. */
export function levelBits(levels: readonly LogLevel[]): number {
  return levels.reduce((bits, level) => bits | (1 << LOG_LEVELS.indexOf(level)), 0);
}
