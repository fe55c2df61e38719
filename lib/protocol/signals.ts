import type { LogLevel } from './vocabulary';

/** A hook that died. */
export const HOOK_FATAL = 'hook_fatal';

/** Whether an insight needs a person's attention: it marks its agent and sessions until somebody has seen it. */
export function isFailure({ signal, outcome }: { signal: string; outcome: string | null }, level: LogLevel): boolean {
  return signal === HOOK_FATAL || outcome === 'failed' || level === 'error' || level === 'fatal';
}

export function isOfHook({ signal }: { signal: string }): boolean {
  return signal === HOOK_FATAL;
}
