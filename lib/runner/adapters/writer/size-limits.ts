import type { AgUiEvent, RequestOption } from '@interlude/protocol/ag-ui';
import { isObject } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';

/** UTF-16 units of one delta: below MAX_RECORD_BYTES even if JSON escapes every unit. */
const MAX_DELTA = 128 * 1024;
/** The longest escape, such as `\u0000`. */
const MAX_BYTES_PER_UNIT = 6;

/** Splits a text into parts that each fit a record, never inside a surrogate pair. */
export function splitText(text: string): string[] {
  const parts: string[] = [];
  for (let index = 0; index < text.length; ) {
    const part = truncateText(text.slice(index, index + MAX_DELTA + 1), MAX_DELTA);
    parts.push(part);
    index += part.length;
  }
  return parts;
}

/**
 * Truncates a text that can't be split, and notes how much is missing.
 *
 * @param maxBytes of JSON, without the note
 */
export function truncateWithNote(text: string, maxBytes = 768 * 1024): string {
  let kept = truncateText(text, maxBytes);
  while (kept.length * MAX_BYTES_PER_UNIT > maxBytes && jsonBytes(kept) > maxBytes) {
    kept = truncateText(kept, Math.floor(kept.length * 0.75));
  }
  if (kept.length === text.length) return text;
  return withTruncationNote(kept, text.length - kept.length);
}

export function withTruncationNote(kept: string, cut: number): string {
  return cut === 0 ? kept : `${kept}\n… [${cut.toLocaleString('en')} characters cut]`;
}

/** Size of a text as UTF-8 JSON. */
export function jsonBytes(text: string): number {
  return new TextEncoder().encode(JSON.stringify(text)).length;
}

/** Limits of an event; the rest of the record is for its envelope. */
const MOST: Measure = { units: 160 * 1024, values: 10_000, depth: 48 };
/** Bytes of JSON, checked only above the `units` limit. */
const MOST_BYTES = 960 * 1024;

interface Measure {
  /** UTF-16 units of all keys and strings; JSON takes at most six bytes for each. */
  units: number;
  values: number;
  depth: number;
}

/** Truncation levels, tried in order. */
const CUTS = [
  { text: 32 * 1024, entries: 1_000, depth: 40 },
  { text: 4 * 1024, entries: 200, depth: 16 },
  { text: 1024, entries: 40, depth: 8 },
  { text: 2 * MAX_ID_LENGTH, entries: 5, depth: 4 },
] as const;

const IDS = ['messageId', 'parentMessageId', 'toolCallId', 'subagentRunId', 'runId', 'parentRunId'] as const;
const VALUE_IDS = ['task_id', 'run_id', 'tool_use_id', 'parent_task_id'] as const;

/** Truncates an event to what the server accepts, with valid ids. Returns the same object if it fits. */
export function boundEvent(event: AgUiEvent): AgUiEvent {
  const named = withIds(event);
  if (fits(named)) return named;
  let cut: AgUiEvent = named;
  for (const { text, entries, depth } of CUTS) {
    cut = truncateValue(named, text, entries, depth) as AgUiEvent;
    if (fits(cut)) return cut;
  }
  return cut;
}

/** Shortens an overlong id; deterministic and collision-resistant. */
function boundId(id: string): string {
  if (id.length <= MAX_ID_LENGTH) return id;
  let hash = 0xcbf29ce484222325n;
  for (let index = 0; index < id.length; index += 1)
    hash = BigInt.asUintN(64, (hash ^ BigInt(id.charCodeAt(index))) * 0x100000001b3n);
  return `${truncateText(id, 128)}~${hash.toString(16)}`;
}

function withIds(event: AgUiEvent): AgUiEvent {
  const { value } = event;
  const named = idsIn(event, IDS);
  if (typeof value !== 'object' || value === null) return named;
  const known = idsIn(value as Record<string, unknown>, VALUE_IDS);
  return known === value ? named : { ...named, value: known };
}

function idsIn<Whole extends Record<string, unknown>>(whole: Whole, names: readonly string[]): Whole {
  const isLong = (id: unknown) => typeof id === 'string' && id.length > MAX_ID_LENGTH;
  const long = names.filter((name) => isLong(whole[name]));
  if (long.length === 0) return whole;
  return { ...whole, ...Object.fromEntries(long.map((name) => [name, boundId(String(whole[name]))])) };
}

function fits(event: AgUiEvent): boolean {
  const left = { ...MOST };
  if (measure(event, left, 0)) return true;
  // Unescaped ASCII takes one byte a unit.
  if (left.values < 0 || left.depth < 0 || left.units < -MOST_BYTES) return false;
  return new TextEncoder().encode(JSON.stringify(event)).length <= MOST_BYTES;
}

/** @param left remaining budget; negative once exceeded */
function measure(value: unknown, left: Measure, depth: number): boolean {
  left.values -= 1;
  if (typeof value === 'string') left.units -= value.length;
  else if (typeof value === 'object' && value !== null) {
    if (depth >= MOST.depth) left.depth = -1;
    if (left.values < 0 || left.depth < 0) return false;
    for (const [name, one] of Object.entries(value)) {
      if (!Array.isArray(value)) left.units -= name.length;
      measure(one, left, depth + 1);
      if (left.values < 0 || left.depth < 0) return false;
    }
  }
  return left.units >= 0;
}

function truncateValue(value: unknown, text: number, entries: number, depth: number): unknown {
  if (typeof value === 'string') return value.length <= text ? value : truncateWithNote(value, text);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '…';
  const inner = (one: unknown) => truncateValue(one, text, entries, depth - 1);
  if (Array.isArray(value)) {
    const left = value.length - entries;
    return left <= 0 ? value.map(inner) : [...value.slice(0, entries).map(inner), `… ${left} more`];
  }
  const all = Object.entries(value);
  // Identifying fields come first: type, name, ids.
  const kept = all.slice(0, Math.max(entries, 12)).map(([name, one]) => [truncateWithNote(name, 256), inner(one)]);
  if (all.length > kept.length) kept.push(['…', `${all.length - kept.length} more`]);
  return Object.fromEntries(kept);
}

/** Bytes of JSON: an input beyond these limits does not fit a record, and no person could review it. */
const MAX_BYTES = 512 * 1024;
const MAX_DEPTH = 36;
const MAX_VALUES = 5_000;

interface DisplayInput {
  input: unknown;
  options: RequestOption[];
}

/**
 * Returns the input of a request as a person sees it before allowing. A request whose input can't be shown in full can
 * only be denied.
 *
 * @param isWhole false if the input is already truncated
 */
export function displayInput(input: unknown, options: readonly RequestOption[], isWhole = true): DisplayInput {
  if (isWhole && isDisplayable(input)) return { input, options: [...options] };
  return {
    input: { text: 'The input is too long to display, so you can only deny it.' },
    options: options.filter(({ kind }) => kind === 'deny'),
  };
}

function isDisplayable(input: unknown): boolean {
  return hasRoom(input, { values: MAX_VALUES }, 0) && jsonBytes(JSON.stringify(input) ?? '') <= MAX_BYTES;
}

function hasRoom(value: unknown, left: { values: number }, depth: number): boolean {
  left.values -= 1;
  if (left.values < 0 || depth > MAX_DEPTH) return false;
  if (typeof value === 'string') return value.length <= MAX_BYTES;
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every((one) => hasRoom(one, left, depth + 1));
}

/** Names, titles, paths and ids. */
const MAX_SHORT_TEXT = 8 * 1024;
/** Bytes of JSON. */
const MAX_KEPT_BYTES = 256 * 1024;
/** Protects recursive readers from stack overflow. */
const MAX_FRAME_DEPTH = 100;

/** Fields whose strings may have any length: their users split, truncate or measure them. */
const LONG = new Set(['text', 'oldText', 'newText', 'data', 'blob', 'rawInput', 'rawOutput']);

/** Bounds all strings of a frame except those in LONG. Returns the same object if nothing changes. */
export function boundFrame(value: unknown, isLong = false, depth = 0): unknown {
  if (typeof value === 'string')
    return isLong || value.length <= MAX_SHORT_TEXT ? value : `${truncateText(value, MAX_SHORT_TEXT)}…`;
  if (depth > MAX_FRAME_DEPTH && typeof value === 'object' && value !== null) return '…';
  if (Array.isArray(value)) {
    const list = value.map((one) => boundFrame(one, isLong, depth + 1));
    return list.some((one, index) => one !== value[index]) ? list : value;
  }
  if (!isObject(value)) return value;
  let copy: Record<string, unknown> | null = null;
  for (const [key, one] of Object.entries(value)) {
    const kept = boundFrame(one, isLong || LONG.has(key), depth + 1);
    const isCut = key.length > MAX_SHORT_TEXT;
    if (kept === one && !isCut) continue;
    copy ??= { ...value };
    if (isCut) delete copy[key];
    copy[isCut ? `${truncateText(key, MAX_SHORT_TEXT)}…` : key] = kept;
  }
  return copy ?? value;
}

/** Returns a native value unchanged if it fits a record, else the beginning of its JSON. */
export function boundValue<Value>(value: Value): Value | { beginning: string } {
  const whole = JSON.stringify(value) ?? 'null';
  const isLong = whole.length > MAX_KEPT_BYTES / 6 && jsonBytes(whole) > MAX_KEPT_BYTES;
  return isLong ? { beginning: truncateWithNote(whole, MAX_KEPT_BYTES) } : value;
}
