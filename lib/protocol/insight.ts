import { isId } from './fields';
import { MAX_ID_LENGTH, MAX_INSIGHT_DETAIL } from './limits';
import { truncateText } from './text';
import type { LogLevel } from './vocabulary';

/** A machine-readable observation or failure in a log line. @see PROTOCOL.md, Log records */
export interface SentInsight {
  /** Name of the observation, of any vocabulary: `hook_fatal`, `outbox_poisoned`, `context_ratio`… */
  signal: string;
  value?: number | string | boolean;
  /** `failed` needs a person's attention. */
  outcome?: string;
  /** Its subject: the name of a hook or component. */
  source: string;
  sessionId?: string;
  /** Default: the line's message. */
  detail?: string;
}

export interface ReadInsight {
  signal: string;
  value: number | string | boolean | null;
  outcome: string | null;
  source: string | null;
  /** Null if the insight names no session. `id` is null if the insight names an invalid id. */
  session: { id: string | null } | null;
  detail: string | null;
}

/**
 * Reads an insight of any shape: a field of the wrong type is kept as text, and the line is never rejected.
 *
 * @returns null if there is none
 */
export function readInsight(sent: unknown): ReadInsight | null {
  if (sent === undefined || sent === null) return null;
  const fields = typeof sent === 'object' && !Array.isArray(sent) ? (sent as Record<string, unknown>) : { value: sent };
  const id = fields.sessionId ?? null;
  return {
    // `kind` and `subject`: the names used by runners that only knew `hook_fatal`
    signal: textIn(fields.signal, MAX_ID_LENGTH) ?? textIn(fields.kind, MAX_ID_LENGTH) ?? 'unknown',
    value: valueIn(fields.value),
    outcome: textIn(fields.outcome, MAX_ID_LENGTH),
    source: textIn(fields.source, MAX_ID_LENGTH) ?? textIn(fields.subject, MAX_ID_LENGTH),
    session: id === null ? null : { id: isId(id) ? id : null },
    detail: textIn(fields.detail, MAX_INSIGHT_DETAIL),
  };
}

export function reportsFailure({ level, insight }: { level: LogLevel; insight?: unknown }): boolean {
  const read = readInsight(insight);
  return read !== null && isFailure(read, level);
}

function valueIn(value: unknown): ReadInsight['value'] {
  return typeof value === 'boolean' || typeof value === 'number' ? value : textIn(value, MAX_INSIGHT_DETAIL);
}

/** Null for blank or missing text. */
function textIn(value: unknown, most: number): string | null {
  if (value === undefined || value === null) return null;
  const text = truncateText(typeof value === 'string' ? value : JSON.stringify(value), most).replaceAll('\0', '\uFFFD');
  return text.trim() === '' ? null : text;
}

/** Signal of a hook that died. */
export const HOOK_FATAL = 'hook_fatal';

/** True if an insight needs a person's attention. It marks its agent and sessions until seen. */
export function isFailure({ signal, outcome }: { signal: string; outcome: string | null }, level: LogLevel): boolean {
  return signal === HOOK_FATAL || outcome === 'failed' || level === 'error' || level === 'fatal';
}

export function isHookSignal({ signal }: { signal: string }): boolean {
  return signal === HOOK_FATAL;
}
