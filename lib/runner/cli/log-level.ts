import { misreadLevel } from '@/lib/runner/logger/level-switch';

/** The level a runner's log begins with; one that is none is said, since it would be missed where it matters. */
export function logLevelOf(env: Record<string, string | undefined>): string | undefined {
  const misread = misreadLevel(env.INTERLUDE_LOG_LEVEL);
  if (misread !== null) process.stderr.write(`interlude: ${misread}\n`);
  return env.INTERLUDE_LOG_LEVEL;
}
