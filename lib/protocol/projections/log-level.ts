import type { AgentStatus } from '../agent-status';
import { pickTime } from '../event-fields';
import type { AgentLogLevel } from '../read-models';
import { truncateText } from '../text';

/**
 * What a status record says about the level its runner logs at: `logLevel`, and in `logSwitch` who set it, until when,
 * and what the default is.
 *
 * @param at when the server received it
 * @returns `before` itself if the record says nothing new
 */
export function heardLevel(before: AgentLogLevel, status: AgentStatus, at: number): AgentLogLevel {
  const { logLevel: level, logSwitch: said } = status;
  if (level === undefined) return before;
  const by = said?.by ? truncateText(said.by, MOST_BY) : null;
  const until = said === undefined ? null : pickTime(said, 'until');
  const base = said?.base ?? null;
  if (level === before.level && by === before.by && until === before.until && base === before.base) return before;
  return { ...before, level, since: level === before.level ? before.since : at, by, until, base };
}

const MOST_BY = 256;
