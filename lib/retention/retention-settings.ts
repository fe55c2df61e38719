import { numberSetting } from '@/lib/access/number-setting';
import { SESSION_STATES, type SessionState } from '@/lib/protocol/agent-state';
import { serverLog } from '@/lib/protocol/server-log.mjs';

type Environment = Record<string, string | undefined>;

const DAY_MS = 24 * 60 * 60_000;
const MIB = 1024 * 1024;
const DEFAULT_DAYS = 90;
const DEFAULT_AUDIT_DAYS = 400;
/** What stands for no limit. */
const FOREVER = 'forever';

/** How much of what has happened is kept. `Infinity` is no limit. */
export interface HistoryRetention {
  /** How long from when it was received, in sessions of each state. */
  maxAgeMs: Readonly<Record<SessionState, number>>;
  /** The same for what is of no session. */
  elsewhereMs: number;
  auditMs: number;
  /** Most bytes of the whole database. */
  maxBytes: number;
}

/** What the environment says; see docs/database.md. */
export function historyRetention(env: Environment): HistoryRetention {
  const days = limitSetting(env, 'INTERLUDE_RETENTION_DAYS', DEFAULT_DAYS, `turns are kept ${DEFAULT_DAYS} days`);
  const byState = statesSetting(env);
  return {
    maxAgeMs: Object.fromEntries(
      SESSION_STATES.map((state) => [state, (byState[state] ?? days) * DAY_MS]),
    ) as HistoryRetention['maxAgeMs'],
    elsewhereMs: days * DAY_MS,
    auditMs:
      limitSetting(env, 'INTERLUDE_AUDIT_RETENTION_DAYS', DEFAULT_AUDIT_DAYS, 'the audit keeps 400 days') * DAY_MS,
    maxBytes:
      limitSetting(env, 'INTERLUDE_RETENTION_MIB', Number.POSITIVE_INFINITY, 'the database may grow to any size') * MIB,
  };
}

function limitSetting(env: Environment, name: string, byDefault: number, otherwise: string): number {
  return env[name] === FOREVER ? Number.POSITIVE_INFINITY : numberSetting(env, name, { byDefault, otherwise });
}

/** `exited=30, complete=7` */
function statesSetting(env: Environment): Partial<Record<SessionState, number>> {
  const name = 'INTERLUDE_RETENTION_DAYS_BY_STATE';
  const found: Partial<Record<SessionState, number>> = {};
  for (const part of (env[name] ?? '').split(',').filter((text) => text.trim() !== '')) {
    const [state = '', text = ''] = part.split('=').map((word) => word.trim());
    const days = text === FOREVER ? Number.POSITIVE_INFINITY : Number(text);
    if (isState(state) && days > 0) found[state] = days;
    else {
      const known = SESSION_STATES.join(', ');
      serverLog(
        'warn',
        `${name}: ${JSON.stringify(part.trim())} is ignored. Write <state>=<days>, with a state of ${known}.`,
      );
    }
  }
  return found;
}

function isState(text: string): text is SessionState {
  return (SESSION_STATES as readonly string[]).includes(text);
}
