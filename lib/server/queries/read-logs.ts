import { AppError, toAbortError } from '@interlude/protocol/errors';
import { MAX_LOG_SEARCH_LENGTH } from '@interlude/protocol/limits';
import { type Position, positionFromNumber, positionToNumber } from '@interlude/protocol/position';
import { EVERY_LINE, type LogFilter, parseTerms } from '@interlude/protocol/projections/log-filter';
import type { LogFilterQuery, LogQuery } from '@interlude/protocol/queries';
import type { AgentLogLevel, LogComponentList, LogExtent, LogLine, LogPage } from '@interlude/protocol/read-models';
import { redactLine } from '@interlude/protocol/redaction/redact-model';
import { truncateText } from '@interlude/protocol/text';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/vocabulary';
import { agentLogs, logComponents } from '@/db/schema';
import { logsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import type { ReadScope } from '@/lib/server/access/request-context';
import { readLinePosition } from './log-chunks';
import { readLogAgent } from './read-agents';
import { type Query, query, readSnapshot } from './read-snapshot';
import { type LogScan, type ScanRange, scanLog } from './scan-log';

/** The newest page, the page before or after a line, or the page around a line, a line number or a time. */
export type LogPlace =
  | { kind: 'newest' }
  | { kind: 'before' | 'after' | 'around'; position: number }
  | { kind: 'line'; line: number }
  | { kind: 'at'; at: number };

interface LogRequest {
  filter: LogFilter;
  place: LogPlace;
  limit: number;
}

export interface LogPageLimits {
  /** Maximum bytes of messages, exceeded by one line at most. */
  bytes: number;
  /** Milliseconds on the event loop after which a search returns the matches so far. */
  searchMs: number;
}

const LIMITS: LogPageLimits = { bytes: 1024 * 1024, searchMs: 200 };

/**
 * A page of an agent's log in ascending order.
 *
 * @returns null for an unknown agent
 */
export async function readLogLines(
  view: ReadScope,
  agentId: string,
  { filter, place, limit }: LogRequest,
  limits: LogPageLimits = LIMITS,
): Promise<LogPage | null> {
  const { reader } = view;
  const id = columnText(agentId);
  const { position, found } = await readSnapshot(view, [agentExists(view, id), selectExtent(id)]);
  const [agent, [log = NO_LOG]] = found;
  if (agent.length === 0) return null;
  const head = { position, log };
  const newest = positionToNumber(position);
  const scan = async (direction: ScanRange['direction'], edge: number, most: number, share = 1) => {
    const [bytes, budgetMs] = [limits.bytes * share, limits.searchMs * share];
    // One extra line shows that there are more.
    const range = { direction, edge, newest, limit: most + 1, bytes, budgetMs };
    return part(await scanLog(view, id, filter, range), most);
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

  /** Null if all lines are older. */
  async function middleOf(place: Exclude<LogPlace, { kind: 'newest' }>): Promise<number | null> {
    if (place.kind === 'line') return readLinePosition(reader, id, place.line);
    return place.kind === 'at' ? positionAt(place.at) : place.position;
  }

  /** The position of the first line at a time or later. */
  async function positionAt(at: number): Promise<number | null> {
    const range = { direction: 'newer', edge: 0, newest, limit: 1, bytes: 1, budgetMs: Infinity } as const;
    const { lines } = await scanLog(view, id, { ...EVERY_LINE, from: at }, range);
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

const EXTENT = shapeOf(agentLogs, 'lastLine', 'removedLines', 'bytes');

const NO_LOG: LogExtent = { firstLine: 1, lastLine: 0, lines: 0, bytes: 0 };

function selectExtent(agentId: string): Query<LogExtent> {
  const toExtent = (row: Parameters<typeof EXTENT.read>[0]): LogExtent => {
    const { lastLine, removedLines, bytes } = EXTENT.read(row);
    return { firstLine: removedLines + 1, lastLine, lines: lastLine - removedLines, bytes };
  };
  return query(toExtent, `SELECT ${EXTENT.columns()} FROM agent_logs WHERE agent_id = ?`, agentId);
}

/** @throws AppError `invalid_argument` for an invalid regex */
export async function logFilterOf(query: LogFilterQuery): Promise<LogFilter> {
  const { level, component, q, regex, from, to } = query;
  const components = [...new Set(component)];
  return { level, components, terms: parseTerms(q), regex: regex ? await compiled(regex) : null, from, to };
}

async function compiled(source: string): Promise<LogFilter['regex']> {
  // Loaded on demand: the regex engine is large and rarely used.
  const { compileLogRegex } = await import('@interlude/protocol/projections/log-regex');
  const outcome = compileLogRegex(source);
  if (outcome.kind === 'compiled') return outcome.regex;
  const message = `The regex is invalid: ${outcome.reason}. Use RE2 syntax, without lookaround and backreferences.`;
  throw new AppError('invalid_argument', message, {
    details: { regex: truncateText(source, MAX_LOG_SEARCH_LENGTH), reason: outcome.reason },
  });
}

export function logPlaceOf({ before, after, around, line, at }: LogQuery): LogPlace {
  if (before !== null) return { kind: 'before', position: before };
  if (after !== null) return { kind: 'after', position: after };
  if (around !== null) return { kind: 'around', position: around };
  if (line !== null) return { kind: 'line', line };
  return at === null ? { kind: 'newest' } : { kind: 'at', at };
}

/** The format of the runner's log file: `[2026-11-20T10:26:44.590Z] INFO  [outbox] message`, always one line. */
function textLine({ occurredAt, level, component, message }: LogLine): string {
  const time = new Date(occurredAt).toISOString();
  return `[${time}] ${level.toUpperCase().padEnd(5)} [${oneLine(component)}] ${oneLine(message)}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern removes them
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern removes them
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

function oneLine(text: string): string {
  const plain = text.replace(SEQUENCES, '').replaceAll('\t', ' ').replace(CONTROLS, '');
  const parts = plain.split(/[\r\n\u2028\u2029]+/).map((part) => part.trim());
  return parts.filter((part) => part !== '').join(' ⏎ ');
}

/** Limits the memory of a download. */
const LINES_OF_A_CHUNK = 500;
const BYTES_OF_A_CHUNK = 256 * 1024;
/** Milliseconds per read, after which its lines are sent. */
const BUDGET_MS = 200;

/**
 * Streams the lines that pass a filter as text, oldest first. Excludes lines that arrive meanwhile.
 *
 * Failure: a database error breaks the stream, so the download fails instead of ending early.
 *
 * @param client queue in which the reads wait
 * @returns null for an unknown agent
 */
export async function downloadLog(
  view: ReadScope,
  agentId: string,
  filter: LogFilter,
  client: string,
): Promise<ReadableStream<Uint8Array> | null> {
  const { reads } = view;
  const id = columnText(agentId);
  const { position, found } = await readSnapshot(view, [agentExists(view, id)]);
  if (found[0].length === 0) return null;
  const newest = positionToNumber(position);
  const encoder = new TextEncoder();
  let edge = 0;
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const range = { newest, limit: LINES_OF_A_CHUNK, bytes: BYTES_OF_A_CHUNK, budgetMs: BUDGET_MS };
        const scan = () => scanLog(view, id, filter, { direction: 'newer', edge, ...range });
        const { lines, end, searchedTo } = await reads.run(client, scan, { continues: true }).catch((error) => {
          // The reader logs database failures.
          throw error instanceof AppError ? toAbortError(error) : error;
        });
        edge = searchedTo;
        if (lines.length > 0) {
          controller.enqueue(
            encoder.encode(lines.map((line) => `${textLine(view.redacts ? redactLine(line) : line)}\n`).join('')),
          );
        }
        if (end === 'log') controller.close();
        // The stream does not repeat a pull that enqueues nothing.
        if (end === 'log' || lines.length > 0) return;
      }
    },
  });
}

/** Selects one row if the agent exists and its log is in scope. */
function agentExists({ scope }: Pick<ReadScope, 'scope'>, agentId: string): Query<true> {
  return query(() => true, `SELECT 1 FROM agents WHERE id = ? AND ${logsIn(scope, 'id')}`, agentId);
}

/** Limited, because some agents generate component names without end. */
const MAX_COMPONENTS = 1000;

const COMPONENT = shapeOf(logComponents, 'component', 'lines');

/**
 * The components of an agent's log, by name.
 *
 * @returns null for an unknown agent
 */
export async function readLogComponents(view: ReadScope, agentId: string): Promise<LogComponentList | null> {
  const id = columnText(agentId);
  const sql = `SELECT ${COMPONENT.columns()} FROM log_components WHERE agent_id = ? ORDER BY component LIMIT ?`;
  const { position, found } = await readSnapshot(view, [
    agentExists(view, id),
    query(COMPONENT.read, sql, id, MAX_COMPONENTS),
  ]);
  const [agent, components] = found;
  if (agent.length === 0) return null;
  return { position, components: components.map(({ component, lines }) => ({ name: component, lines })) };
}

/** `GET /agents/:id/log-level` */
export interface LogLevelDetail extends AgentLogLevel {
  position: Position;
  /** All levels, the most verbose first. */
  levels: readonly LogLevel[];
}

/** @returns null for an unknown agent */
export async function readLogLevel(view: ReadScope, agentId: string): Promise<LogLevelDetail | null> {
  const found = await readLogAgent(view, agentId);
  return found === null ? null : { position: found.position, ...found.agent.logLevel, levels: LOG_LEVELS };
}
