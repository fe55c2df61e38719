import { cutText } from '@/lib/protocol/cut-text';
import { LOG_LEVELS } from '@/lib/protocol/log-levels';
import type { AgentLogLevel } from '@/lib/protocol/read-models';
import { pickTime } from './event-fields';

/**
 * What a status record says of the level its runner writes at: `logLevel`, and in `logSwitch` who turned it there, until
 * when, and what its default is.
 *
 * @param at when the server got it
 * @returns what it was given where the record says nothing new
 */
export function heardLevel(before: AgentLogLevel, status: Record<string, unknown>, at: number): AgentLogLevel {
  const level = LOG_LEVELS.find((one) => one === status.logLevel);
  if (level === undefined) return before;
  const said = (typeof status.logSwitch === 'object' ? status.logSwitch : null) as Record<string, unknown> | null;
  const by = typeof said?.by === 'string' && said.by !== '' ? cutText(said.by, MOST_BY) : null;
  const until = said === null ? null : pickTime(said, 'until');
  const base = LOG_LEVELS.find((one) => one === said?.base) ?? null;
  if (level === before.level && by === before.by && until === before.until && base === before.base) return before;
  return { ...before, level, since: level === before.level ? before.since : at, by, until, base };
}

const MOST_BY = 256;
