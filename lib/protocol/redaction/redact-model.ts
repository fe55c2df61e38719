import { isObject } from '../fields';
import { counted, FieldMarks, FREE, redactList, redactValue, type Tally } from './redact-value';
import { prepareTexts, type Rest } from './redacted-text';

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
export async function redactModel<Model extends object>(model: Model, rest: Rest, isFree = false): Promise<Model> {
  if (REDACTED.has(model)) return model;
  const tally: Tally = { redacted: 0 };
  const next = await walk(model, tally, rest, isFree);
  // an outlet's body has no field for the count
  if (!isObject(next) || isFree) return next as Model;
  const before = typeof next.redacted === 'number' ? next.redacted : 0;
  return { ...next, redacted: before + tally.redacted } as Model & { redacted: number };
}

/** As `redactValue`, in turns. */
async function walk(value: object, tally: Tally, rest: Rest, isFree: boolean, name = ''): Promise<unknown> {
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
      ? await linesOf(field, tally, rest)
      : own.isDone
        ? own.field
        : await redactEntry(marks.nameOf(key, field), own.field, tally, rest, isFree || FREE.has(key));
    fields.push([isFree ? counted(key, tally) : key, next]);
  }
  return Object.fromEntries(fields);
}

async function redactEntry(name: string, field: unknown, tally: Tally, rest: Rest, isFree: boolean): Promise<unknown> {
  if (isBranch(field)) return walk(field, tally, rest, isFree, name);
  await prepareTexts(field, rest);
  return redactValue(field, tally, isFree, name);
}

async function linesOf(lines: readonly unknown[], tally: Tally, rest: Rest): Promise<unknown[]> {
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
function isBranch(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (REDACTED.has(value)) return true;
  return Array.isArray(value) ? value.some(isPart) : Object.values(value).some(Array.isArray);
}

function isPart(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
