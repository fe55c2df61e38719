import type { AgUiEvent } from '../ag-ui';
import { CUSTOM_NAMES } from '../event-fields';
import { isObject } from '../fields';
import { FieldMarks, FREE_FORM_FIELDS, redactList, redactText, redactValue, type Tally } from './redact-value';
import { prepareTexts, redactedText, type YieldIfDue } from './redacted-text';

/** Objects already redacted by their reader, which had more context than their texts give. */
const REDACTED = new WeakSet<object>();

export function markRedacted<Model extends object>(model: Model): Model {
  REDACTED.add(model);
  return model;
}

export function isRedacted(model: object): boolean {
  return REDACTED.has(model);
}

/**
 * Redacts every text of a read model, except objects passed to `markRedacted`. Counts secrets in `redacted` of the model
 * and of each log line.
 *
 * @param isFree true to redact keys and identifiers too
 */
export async function redactModel<Model extends object>(
  model: Model,
  yieldIfDue: YieldIfDue,
  isFree = false,
): Promise<Model> {
  if (REDACTED.has(model)) return model;
  const tally: Tally = { redacted: 0 };
  const next = await walk(model, tally, yieldIfDue, isFree);
  // An outlet's body has no field for the count.
  if (!isObject(next) || isFree) return next as Model;
  const before = typeof next.redacted === 'number' ? next.redacted : 0;
  return { ...next, redacted: before + tally.redacted } as Model & { redacted: number };
}

/** Like `redactValue`, but yields in between. */
async function walk(value: object, tally: Tally, yieldIfDue: YieldIfDue, isFree: boolean, name = ''): Promise<unknown> {
  const due = yieldIfDue();
  if (due !== null) await due;
  if (REDACTED.has(value)) return value;
  if (Array.isArray(value)) {
    const entries: unknown[] = [];
    for (const entry of isFree ? redactList(value, tally, name) : value)
      entries.push(await redactEntry(name, entry, tally, yieldIfDue, isFree));
    return entries;
  }
  const marks = new FieldMarks(value, name, isFree);
  const fields: [string, unknown][] = [];
  for (const [key, field] of Object.entries(value)) {
    const isLog = !isFree && key === 'lines' && Array.isArray(field);
    const marked = marks.redact(key, field, tally);
    const next = isLog
      ? await redactLines(field, tally, yieldIfDue)
      : marked.isDone
        ? marked.field
        : await redactEntry(
            marks.nameOf(key, field),
            marked.field,
            tally,
            yieldIfDue,
            isFree || FREE_FORM_FIELDS.has(key),
          );
    fields.push([isFree ? redactText(key, tally) : key, next]);
  }
  return Object.fromEntries(fields);
}

async function redactEntry(
  name: string,
  field: unknown,
  tally: Tally,
  yieldIfDue: YieldIfDue,
  isFree: boolean,
): Promise<unknown> {
  if (mayHoldLists(field)) return walk(field, tally, yieldIfDue, isFree, name);
  await prepareTexts(field, yieldIfDue);
  return redactValue(field, tally, isFree, name);
}

async function redactLines(lines: readonly unknown[], tally: Tally, yieldIfDue: YieldIfDue): Promise<unknown[]> {
  const next: unknown[] = [];
  for (const line of lines) {
    next.push(redactLine(line, tally));
    const due = yieldIfDue();
    if (due !== null) await due;
  }
  return next;
}

/** Redacts a log line, which carries its own count. */
export function redactLine<Line>(line: Line, tally: Tally = { redacted: 0 }): Line {
  const found: Tally = { redacted: 0 };
  const next = redactValue(line, found, false);
  if (found.redacted === 0 || !isObject(next)) return next as Line;
  tally.redacted += found.redacted;
  const before = typeof next.redacted === 'number' ? next.redacted : 0;
  return { ...next, redacted: before + found.redacted } as Line;
}

/** True if a value may contain lists long enough to yield in between. */
function mayHoldLists(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (REDACTED.has(value)) return true;
  return Array.isArray(value) ? value.some(isContainer) : Object.values(value).some(Array.isArray);
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/** Replacements for content digests; null hides a digest. */
interface DigestMask {
  request(digest: string): string | null;
  attachment(hash: string): string;
}

/** Log lines, whose fields come from the agent. */
const LOG_LINES = 'lines';

/** True if a JSON text may contain a digest. Parsing every text costs too much. */
export function mayHaveDigest(json: string): boolean {
  return json.includes('"digest":') || json.includes('"hash":');
}

/**
 * Masks the digests of a JSON value: `digest` of requests and answers, `hash` of attachments. Returns the same object
 * without any. Free-form fields stay unchanged.
 */
export function maskDigests<Value>(value: Value, mask: DigestMask): Value {
  return masked(value, mask) as Value;
}

/** Copies only changed objects, because most have no digest. */
function masked(value: unknown, mask: DigestMask): unknown {
  if (typeof value !== 'object' || value === null) return value;
  let copy: unknown[] | Record<string, unknown> | null = null;
  const change = (key: number | string, field: unknown, next: unknown) => {
    if (next === field) return;
    copy ??= Array.isArray(value) ? [...value] : { ...value };
    Reflect.set(copy, key, next);
  };
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) change(index, entry, masked(entry, mask));
    return copy ?? value;
  }
  const fields = value as Record<string, unknown>;
  for (const name of Object.keys(fields)) {
    if (FREE_FORM_FIELDS.has(name) || name === LOG_LINES || isForeign(name, fields)) continue;
    change(name, fields[name], maskedField(name, fields[name], mask));
  }
  return copy ?? value;
}

function maskedField(name: string, field: unknown, mask: DigestMask): unknown {
  if (typeof field !== 'string') return masked(field, mask);
  if (name === 'digest') return mask.request(field);
  return name === 'hash' ? mask.attachment(field) : field;
}

/** True for the value of another vendor's custom event. */
function isForeign(name: string, { type, name: event }: Partial<AgUiEvent>): boolean {
  return name === 'value' && type === 'CUSTOM' && !CUSTOM_NAMES.has(event);
}

/**
 * Outputs without a principal: other services, collectors, logs, lock screens. They never receive secrets. For API
 * responses, the principal's `redacts` decides (lib/server/handle-route.ts).
 */
export const OUTLETS = ['webhook', 'traces', 'metrics', 'server-log', 'desktop-notice'] as const;
export type Outlet = (typeof OUTLETS)[number];

/** A quoted label value in the Prometheus text format. */
const LABEL_VALUE = /"((?:[^"\\\n]|\\.)*)"/g;
const LINES_AT_ONCE = 500;

declare const REDACTED_FOR: unique symbol;
/** A redacted text for one outlet. Only this module creates it, so an outlet cannot receive unredacted text. */
export type RedactedFor<To extends Outlet> = string & { readonly [REDACTED_FOR]: To };

export function redactedFor<To extends Outlet>(_outlet: To, text: string): RedactedFor<To> {
  return redactedText(text).text as RedactedFor<To>;
}

/** Redacts metrics in the Prometheus text format. Only label values can hold a secret; each distinct one is redacted once. */
export async function redactedMetrics(text: string, yieldIfDue: YieldIfDue): Promise<RedactedFor<'metrics'>> {
  const redacted = new Map<string, string>();
  const redact = (_quoted: string, value: string) => {
    const known = redacted.get(value) ?? redactedFor('metrics', value);
    redacted.set(value, known);
    return `"${known}"`;
  };
  const lines = text.split('\n');
  const shown: string[] = [];
  for (let index = 0; index < lines.length; index += LINES_AT_ONCE) {
    const some = lines.slice(index, index + LINES_AT_ONCE).join('\n');
    shown.push(some.replace(LABEL_VALUE, redact));
    await yieldIfDue();
  }
  return shown.join('\n') as RedactedFor<'metrics'>;
}

/** JSON of a value with all texts redacted, keys and identifiers included. */
export async function redactedJson<To extends Outlet>(
  _outlet: To,
  value: object,
  yieldIfDue: YieldIfDue = () => null,
): Promise<RedactedFor<To>> {
  return JSON.stringify(await redactModel(value, yieldIfDue, true)) as RedactedFor<To>;
}
