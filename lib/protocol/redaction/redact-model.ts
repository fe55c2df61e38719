import type { AgUiEvent } from '../ag-ui';
import { CUSTOM } from '../event-fields';
import { isObject } from '../fields';
import { FieldMarks, FREE_FORM_FIELDS, redactList, redactText, redactValue, type Tally } from './redact-value';
import { prepareTexts, redactedText, type YieldIfDue } from './redacted-text';

/** What was redacted where it was read, with more knowledge of it than its texts tell. */
const REDACTED = new WeakSet<object>();

export function markRedacted<Model extends object>(model: Model): Model {
  REDACTED.add(model);
  return model;
}

export function isRedacted(model: object): boolean {
  return REDACTED.has(model);
}

/**
 * A read model without secrets, and how many were taken out: in `redacted` of the model itself, and of each line of a
 * log. Whatever it is of, every text in it is looked at, but for what was marked as redacted.
 *
 * @param rest gives others their turns, when it is time to
 * @param isFree whether its names and ids are redacted, too: nobody asks for anything by them
 */
export async function redactModel<Model extends object>(
  model: Model,
  rest: YieldIfDue,
  isFree = false,
): Promise<Model> {
  if (REDACTED.has(model)) return model;
  const tally: Tally = { redacted: 0 };
  const next = await walk(model, tally, rest, isFree);
  // an outlet's body has no field for the count
  if (!isObject(next) || isFree) return next as Model;
  const before = typeof next.redacted === 'number' ? next.redacted : 0;
  return { ...next, redacted: before + tally.redacted } as Model & { redacted: number };
}

/** As `redactValue`, in turns. */
async function walk(value: object, tally: Tally, rest: YieldIfDue, isFree: boolean, name = ''): Promise<unknown> {
  const due = rest();
  if (due !== null) await due;
  if (REDACTED.has(value)) return value;
  if (Array.isArray(value)) {
    const entries: unknown[] = [];
    for (const entry of isFree ? redactList(value, tally, name) : value)
      entries.push(await redactEntry(name, entry, tally, rest, isFree));
    return entries;
  }
  const marks = new FieldMarks(value, name, isFree);
  const fields: [string, unknown][] = [];
  for (const [key, field] of Object.entries(value)) {
    const isLog = !isFree && key === 'lines' && Array.isArray(field);
    const own = marks.redact(key, field, tally);
    const next = isLog
      ? await redactLines(field, tally, rest)
      : own.isDone
        ? own.field
        : await redactEntry(marks.nameOf(key, field), own.field, tally, rest, isFree || FREE_FORM_FIELDS.has(key));
    fields.push([isFree ? redactText(key, tally) : key, next]);
  }
  return Object.fromEntries(fields);
}

async function redactEntry(
  name: string,
  field: unknown,
  tally: Tally,
  rest: YieldIfDue,
  isFree: boolean,
): Promise<unknown> {
  if (mayHoldLists(field)) return walk(field, tally, rest, isFree, name);
  await prepareTexts(field, rest);
  return redactValue(field, tally, isFree, name);
}

async function redactLines(lines: readonly unknown[], tally: Tally, rest: YieldIfDue): Promise<unknown[]> {
  const next: unknown[] = [];
  for (const line of lines) {
    next.push(redactLine(line, tally));
    const due = rest();
    if (due !== null) await due;
  }
  return next;
}

/** A line of a log: it says itself how many secrets were taken out of it. */
export function redactLine<Line>(line: Line, tally: Tally = { redacted: 0 }): Line {
  const own: Tally = { redacted: 0 };
  const next = redactValue(line, own, false);
  if (own.redacted === 0 || !isObject(next)) return next as Line;
  tally.redacted += own.redacted;
  const before = typeof next.redacted === 'number' ? next.redacted : 0;
  return { ...next, redacted: before + own.redacted } as Line;
}

/** Whether there may be a list in it that is worth pauses. */
function mayHoldLists(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (REDACTED.has(value)) return true;
  return Array.isArray(value) ? value.some(isContainer) : Object.values(value).some(Array.isArray);
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/** What a reader is shown in place of a digest over content; null for nothing. */
interface DigestMask {
  request(digest: string): string | null;
  attachment(hash: string): string;
}

/** Of a log. Their fields are its agent's. */
const LOG_LINES = 'lines';

const OWN_EVENT_NAMES: ReadonlySet<unknown> = new Set(Object.values(CUSTOM));

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

/** The value of a custom event that is not Interlude's own. */
function isForeign(name: string, { type, name: event }: Partial<AgUiEvent>): boolean {
  return name === 'value' && type === 'CUSTOM' && !OWN_EVENT_NAMES.has(event);
}

/**
 * Ways out of Interlude to readers that no principal stands for: other services, collectors, logs, lock screens. They
 * never receive secrets. Answers of the API are for a principal, whose `redacts` decides (lib/server/handle-route.ts).
 */
export const OUTLETS = ['webhook', 'traces', 'metrics', 'server-log', 'desktop-notice'] as const;
export type Outlet = (typeof OUTLETS)[number];

/** A label's value in Prometheus' text format, with its quotes. */
const LABEL_VALUE = /"((?:[^"\\\n]|\\.)*)"/g;
const LINES_AT_ONCE = 500;

declare const REDACTED_FOR: unique symbol;
/** A text without secrets, for one outlet. Only this module makes them, so what an outlet is given was redacted. */
export type RedactedFor<To extends Outlet> = string & { readonly [REDACTED_FOR]: To };

export function redactedFor<To extends Outlet>(_outlet: To, text: string): RedactedFor<To> {
  return redactedText(text).text as RedactedFor<To>;
}

/**
 * Redacts metrics in Prometheus' text format. Only the values of labels can hold a secret. Few are distinct, so each is
 * redacted once.
 *
 * @param rest lets other work run when it is due
 */
export async function redactedMetrics(text: string, rest: YieldIfDue): Promise<RedactedFor<'metrics'>> {
  const redacted = new Map<string, string>();
  const redact = (_quoted: string, value: string) => {
    const known = redacted.get(value) ?? redactedFor('metrics', value);
    redacted.set(value, known);
    return `"${known}"`;
  };
  const lines = text.split('\n');
  const shown: string[] = [];
  for (let at = 0; at < lines.length; at += LINES_AT_ONCE) {
    const some = lines.slice(at, at + LINES_AT_ONCE).join('\n');
    shown.push(some.replace(LABEL_VALUE, redact));
    await rest();
  }
  return shown.join('\n') as RedactedFor<'metrics'>;
}

/**
 * JSON of a value without secrets in any of its texts, ids included.
 *
 * @param rest lets other work run when it is due
 */
export async function redactedJson<To extends Outlet>(
  _outlet: To,
  value: object,
  rest: YieldIfDue = () => null,
): Promise<RedactedFor<To>> {
  return JSON.stringify(await redactModel(value, rest, true)) as RedactedFor<To>;
}
