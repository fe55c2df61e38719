import { isId } from './fields';
import { MAX_ID_LENGTH, MAX_INSIGHT_DETAIL } from './limits';
import type { LogLevel } from './record-vocabulary';
import { truncateText } from './text';

/**
 * What a log line tells beside its words: an observation by name, or a failure. @see PROTOCOL.md, What `log` may say
 */
export interface SentInsight {
  /** What was observed: `hook_fatal`, `outbox_poisoned`, `context_ratio`… Of any vocabulary. */
  signal: string;
  value?: number | string | boolean;
  /** `failed` wants a person's look. */
  outcome?: string;
  /** What it is of: a hook's name, a component. */
  source: string;
  sessionId?: string;
  /** Without it, the line's message says it. */
  detail?: string;
}

export interface ReadInsight {
  signal: string;
  value: number | string | boolean | null;
  outcome: string | null;
  /** Null if it says none. */
  source: string | null;
  /** Null if it names none; its id is null if what it names can be no session's. */
  session: { id: string | null } | null;
  detail: string | null;
}

/**
 * What can be made of an insight, whatever was sent as one: a field that does not fit is kept as text, and the line is
 * never refused for it.
 *
 * @returns null if there is none
 */
export function readInsight(sent: unknown): ReadInsight | null {
  if (sent === undefined || sent === null) return null;
  const fields = typeof sent === 'object' && !Array.isArray(sent) ? (sent as Record<string, unknown>) : { value: sent };
  const id = fields.sessionId ?? null;
  return {
    // `kind` and `subject` are what these were called before there was any other than `hook_fatal`
    signal: textIn(fields.signal, MAX_ID_LENGTH) ?? textIn(fields.kind, MAX_ID_LENGTH) ?? 'unknown',
    value: valueIn(fields.value),
    outcome: textIn(fields.outcome, MAX_ID_LENGTH),
    source: textIn(fields.source, MAX_ID_LENGTH) ?? textIn(fields.subject, MAX_ID_LENGTH),
    session: id === null ? null : { id: isId(id) ? id : null },
    detail: textIn(fields.detail, MAX_INSIGHT_DETAIL),
  };
}

/** Whether a log line tells of a failure, by what it carries. */
export function reportsFailure({ level, insight }: { level: LogLevel; insight?: unknown }): boolean {
  const read = readInsight(insight);
  return read !== null && isFailure(read, level);
}

function valueIn(value: unknown): ReadInsight['value'] {
  return typeof value === 'boolean' || typeof value === 'number' ? value : textIn(value, MAX_INSIGHT_DETAIL);
}

/** @returns null for nothing, and for blanks */
function textIn(value: unknown, most: number): string | null {
  if (value === undefined || value === null) return null;
  const text = truncateText(typeof value === 'string' ? value : JSON.stringify(value), most).replaceAll('\0', '\uFFFD');
  return text.trim() === '' ? null : text;
}

/** A hook that died. */
export const HOOK_FATAL = 'hook_fatal';

/** Whether an insight needs a person's attention: it marks its agent and sessions until somebody has seen it. */
export function isFailure({ signal, outcome }: { signal: string; outcome: string | null }, level: LogLevel): boolean {
  return signal === HOOK_FATAL || outcome === 'failed' || level === 'error' || level === 'fatal';
}

export function isHookSignal({ signal }: { signal: string }): boolean {
  return signal === HOOK_FATAL;
}
