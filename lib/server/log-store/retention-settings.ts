import { numberSetting } from '@/lib/server/access/access-settings';
import type { Retention } from './remove-old-lines';

const DEFAULT_DAYS = 14;
const DEFAULT_MIB = 256;
const DAY_MS = 24 * 60 * 60_000;
const MIB = 1024 * 1024;

/** How much of a log the environment says to keep. */
export function logRetention(env: Record<string, string | undefined>): Retention {
  const kept = (name: string, byDefault: number) =>
    numberSetting(env, name, { byDefault, otherwise: `logs keep ${byDefault}` });
  return {
    maxAgeMs: kept('INTERLUDE_LOG_RETENTION_DAYS', DEFAULT_DAYS) * DAY_MS,
    maxBytes: kept('INTERLUDE_LOG_RETENTION_MIB', DEFAULT_MIB) * MIB,
  };
}
