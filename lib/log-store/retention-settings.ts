import type { Retention } from './remove-old-lines';

const DEFAULT_DAYS = 14;
const DEFAULT_MIB = 256;
const DAY_MS = 24 * 60 * 60_000;
const MIB = 1024 * 1024;

/** How much of a log the environment says to keep. A value that makes no sense is logged and ignored. */
export function logRetention(env: Record<string, string | undefined>): Retention {
  return {
    maxAgeMs: setting(env, 'INTERLUDE_LOG_RETENTION_DAYS', DEFAULT_DAYS) * DAY_MS,
    maxBytes: setting(env, 'INTERLUDE_LOG_RETENTION_MIB', DEFAULT_MIB) * MIB,
  };
}

function setting(env: Record<string, string | undefined>, name: string, byDefault: number): number {
  const text = env[name];
  if (text === undefined || text === '') return byDefault;
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  console.error(
    `[interlude] ${name}=${text} is not a number above 0; logs keep ${byDefault}. Set it to one, or leave it out.`,
  );
  return byDefault;
}
