import { misreadLevel } from '../logger/level-switch';

/** The level a runner's log begins with. A bad one is reported at once, because it would be missed when it matters. */
export function logLevelOf(env: Record<string, string | undefined>): string | undefined {
  const misread = misreadLevel(env.INTERLUDE_LOG_LEVEL);
  if (misread !== null) process.stderr.write(`interlude: ${misread}\n`);
  return env.INTERLUDE_LOG_LEVEL;
}
