import { isObject } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { fittingText, jsonBytes } from './writer/long-text';

/** Names, titles, paths and ids: longer ones are cut, so that whatever is made of them fits into a record. */
const MAX_TEXT = 8 * 1024;
/** What is kept as it is may take so much; of what is longer, the beginning is kept. */
const MAX_KEPT_BYTES = 256 * 1024;
/** Deeper, nothing is looked at, and no part of the reader runs out of stack. */
const MAX_DEPTH = 100;

/** What may be of any length: it is told in parts, cut where it is told, or only measured. */
const LONG = new Set(['text', 'oldText', 'newText', 'data', 'blob', 'rawInput', 'rawOutput']);

/** A frame whose every text but those of LONG has a bound. What needs no change stays the same object. */
export function withinReason(value: unknown, isLong = false, depth = 0): unknown {
  if (typeof value === 'string')
    return isLong || value.length <= MAX_TEXT ? value : `${truncateText(value, MAX_TEXT)}…`;
  if (depth > MAX_DEPTH && typeof value === 'object' && value !== null) return '…';
  if (Array.isArray(value)) {
    const list = value.map((one) => withinReason(one, isLong, depth + 1));
    return list.some((one, at) => one !== value[at]) ? list : value;
  }
  if (!isObject(value)) return value;
  let copy: Record<string, unknown> | null = null;
  for (const [key, one] of Object.entries(value)) {
    const kept = withinReason(one, isLong || LONG.has(key), depth + 1);
    const isCut = key.length > MAX_TEXT;
    if (kept === one && !isCut) continue;
    copy ??= { ...value };
    if (isCut) delete copy[key];
    copy[isCut ? `${truncateText(key, MAX_TEXT)}…` : key] = kept;
  }
  return copy ?? value;
}

/** As it is, or, where that is too long for a record, its beginning. */
export function fitting<Value>(value: Value): Value | { beginning: string } {
  const whole = JSON.stringify(value) ?? 'null';
  const isLong = whole.length > MAX_KEPT_BYTES / 6 && jsonBytes(whole) > MAX_KEPT_BYTES;
  return isLong ? { beginning: fittingText(whole, MAX_KEPT_BYTES) } : value;
}
