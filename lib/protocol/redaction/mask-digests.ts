import type { AgUiEvent } from '../ag-ui';
import { CUSTOM } from '../event-fields';
import { FREE } from './redact-value';

/** What a reader is shown in place of a digest over content; null for nothing. */
interface DigestMask {
  request(digest: string): string | null;
  attachment(hash: string): string;
}

/** Of a log. Their fields are its agent's. */
const LINES = 'lines';

const KNOWN_NAMES: ReadonlySet<unknown> = new Set(Object.values(CUSTOM));

/** Whether a JSON text may contain a digest at all: parsing each one would cost too much. */
export function mayHaveDigest(json: string): boolean {
  return json.includes('"digest":') || json.includes('"hash":');
}

/**
 * A JSON value of ours with its digests masked: `digest` of requests and answers, `hash` of attachments. Without any, the
 * same object. Fields that agents and people fill in stay as they are.
 */
export function maskDigests<Value>(value: Value, mask: DigestMask): Value {
  return masked(value, mask) as Value;
}

/** Copies only what changes: most of what is walked has no digest. */
function masked(value: unknown, mask: DigestMask): unknown {
  if (typeof value !== 'object' || value === null) return value;
  let copy: unknown[] | Record<string, unknown> | null = null;
  const change = (key: number | string, field: unknown, next: unknown) => {
    if (next === field) return;
    copy ??= Array.isArray(value) ? [...value] : { ...value };
    Reflect.set(copy, key, next);
  };
  if (Array.isArray(value)) {
    for (const [at, entry] of value.entries()) change(at, entry, masked(entry, mask));
    return copy ?? value;
  }
  const fields = value as Record<string, unknown>;
  for (const name of Object.keys(fields)) {
    if (FREE.has(name) || name === LINES || isForeign(name, fields)) continue;
    change(name, fields[name], maskedField(name, fields[name], mask));
  }
  return copy ?? value;
}

function maskedField(name: string, field: unknown, mask: DigestMask): unknown {
  if (typeof field !== 'string') return masked(field, mask);
  if (name === 'digest') return mask.request(field);
  return name === 'hash' ? mask.attachment(field) : field;
}

/** The value of a custom event that is not Interlude's own. */
function isForeign(name: string, { type, name: event }: Partial<AgUiEvent>): boolean {
  return name === 'value' && type === 'CUSTOM' && !KNOWN_NAMES.has(event);
}
