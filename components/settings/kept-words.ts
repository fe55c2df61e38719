import type { RetentionRules } from '@interlude/protocol/storage';
import { SESSION_STATES } from '@interlude/protocol/vocabulary';

const MIB = 1024 * 1024;

/** One limit to what is kept, and the setting that changes it. */
export interface KeptRule {
  /** The setting's name, and which of its limits this is. */
  id: string;
  setting: string;
  name: string;
  about: string;
  kept: string;
}

/** What is kept and for how long, a line for each limit that is set. */
export function keptRules({ days, elsewhereDays, auditDays, maxBytes, logs }: RetentionRules): KeptRule[] {
  const own = SESSION_STATES.filter((state) => days[state] !== elsewhereDays);
  const byState = [...new Set(own.map((state) => days[state]))].map((limit) => ({
    limit,
    states: own.filter((state) => days[state] === limit).map((state) => state.replaceAll('-', ' ')),
  }));
  return [
    rule('RETENTION_DAYS', 'Turns', 'with their tasks, replies and whatever else has ended', forDays(elsewhereDays)),
    ...byState.map(({ limit, states }) => ({
      ...rule(
        'RETENTION_DAYS_BY_STATE',
        'Turns of some sessions',
        `those that are: ${states.join(', ')}`,
        forDays(limit),
      ),
      id: states.join(),
    })),
    rule('RETENTION_MIB', 'All but the logs', 'over that, the oldest turns go sooner', upTo(maxBytes)),
    rule('LOG_RETENTION_DAYS', 'Log lines', 'of every agent', forDays(logs.days)),
    rule('LOG_RETENTION_MIB', 'Log of each agent', 'over that, its oldest lines go sooner', upTo(logs.maxBytes)),
    rule('AUDIT_RETENTION_DAYS', 'Audit', 'what people and programs did', forDays(auditDays)),
  ];
}

function rule(name: string, what: string, about: string, kept: string): KeptRule {
  const setting = `INTERLUDE_${name}`;
  return { id: setting, setting, name: what, about, kept };
}

function forDays(days: number | null): string {
  if (days === null) return 'for ever';
  return days === 1 ? '1 day' : `${days.toLocaleString('en')} days`;
}

function upTo(bytes: number | null): string {
  return bytes === null ? 'any size' : inMebibytes(bytes);
}

/** As the settings count: `0.4 MiB`, `512 MiB`, `20,480 MiB`. */
export function inMebibytes(bytes: number): string {
  const size = bytes / MIB;
  return `${size.toLocaleString('en', { maximumFractionDigits: size < 100 ? 1 : 0 })} MiB`;
}
