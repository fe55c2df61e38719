import { serverLog } from '@interlude/protocol/server-log.mjs';
import { SESSION_STATES, type SessionState } from '@interlude/protocol/session-states';

type Environment = Record<string, string | undefined>;

const DAY_MS = 24 * 60 * 60_000;
const MIB = 1024 * 1024;
const DEFAULT_DAYS = 90;
const DEFAULT_AUDIT_DAYS = 400;
/** Value that means no limit. */
const FOREVER = 'forever';

/** Limits of the kept history. `Infinity` is no limit. */
export interface HistoryRetention {
  /** Maximum milliseconds since receipt, by the state of the session. */
  maxAgeMs: Readonly<Record<SessionState, number>>;
  /** Maximum milliseconds for rows without a session. */
  elsewhereMs: number;
  auditMs: number;
  /** Maximum bytes of the database, without its logs. */
  maxBytes: number;
  /** States whose sessions keep their history, even if the database is too large. */
  alwaysKept: readonly SessionState[];
}

/**
 * Reads the environment, see docs/database.md. With an invalid setting nothing is removed, since removal can't be
 * undone.
 */
export function historyRetention(env: Environment): HistoryRetention {
  const days = limitSetting(env, 'INTERLUDE_RETENTION_DAYS', DEFAULT_DAYS);
  const byState = statesSetting(env);
  return {
    maxAgeMs: Object.fromEntries(
      SESSION_STATES.map((state) => [state, (byState[state] ?? days) * DAY_MS]),
    ) as HistoryRetention['maxAgeMs'],
    elsewhereMs: days * DAY_MS,
    auditMs: limitSetting(env, 'INTERLUDE_AUDIT_RETENTION_DAYS', DEFAULT_AUDIT_DAYS) * DAY_MS,
    maxBytes: limitSetting(env, 'INTERLUDE_RETENTION_MIB', Number.POSITIVE_INFINITY) * MIB,
    alwaysKept: SESSION_STATES.filter((state) => byState[state] === Number.POSITIVE_INFINITY),
  };
}

function limitSetting(env: Environment, name: string, byDefault: number): number {
  const text = env[name]?.trim() ?? '';
  if (text === '') return byDefault;
  const limit = limitIn(text);
  if (limit !== null) return limit;
  serverLog(
    'error',
    `${name}=${text} is neither a number above 0 nor "${FOREVER}", so it removes nothing. Correct it.`,
  );
  return Number.POSITIVE_INFINITY;
}

function limitIn(text: string): number | null {
  if (text.toLowerCase() === FOREVER) return Number.POSITIVE_INFINITY;
  return Number(text) > 0 ? Number(text) : null;
}

/** `exited=30, complete=7` */
function statesSetting(env: Environment): Partial<Record<SessionState, number>> {
  const name = 'INTERLUDE_RETENTION_DAYS_BY_STATE';
  const found: Partial<Record<SessionState, number>> = {};
  for (const part of (env[name] ?? '').split(',').filter((text) => text.trim() !== '')) {
    const [state = '', text = ''] = part.split('=').map((word) => word.trim());
    const days = limitIn(text);
    if (isState(state)) found[state] = days ?? Number.POSITIVE_INFINITY;
    if (isState(state) && days !== null) continue;
    const consequence = isState(state) ? 'removes nothing' : 'is ignored';
    const known = SESSION_STATES.join(', ');
    serverLog(
      'error',
      `${name}: ${JSON.stringify(part.trim())} ${consequence}. Write <state>=<days> or <state>=${FOREVER}, with a state of ${known}.`,
    );
  }
  return found;
}

function isState(text: string): text is SessionState {
  return (SESSION_STATES as readonly string[]).includes(text);
}
