import { Yielder } from '@/db/yield-to-loop';

/** Lists longer than this are written entry by entry. */
const LONG = 32;

/** A read model as the body of an answer. A large one is written in pieces, and others get their turns between. */
export async function answer(model: object, status = 200): Promise<Response> {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return new Response(await jsonText(model, new Yielder()), { status, headers });
}

/** The result of `JSON.stringify`, for JSON values. */
export async function jsonText(value: unknown, pace: Yielder): Promise<string> {
  if (pace.isDue) await pace.rest();
  if (Array.isArray(value)) {
    if (!isLongList(value)) return JSON.stringify(value);
    const entries: string[] = [];
    for (const entry of value) entries.push(isLarge(entry) || pace.isDue ? await jsonText(entry, pace) : text(entry));
    return `[${entries.join(',')}]`;
  }
  if (!isLarge(value)) return text(value);
  const fields: string[] = [];
  for (const [name, field] of Object.entries(value as object)) {
    if (field === undefined) continue;
    const isPart = isLongList(field) || isLarge(field) || pace.isDue;
    fields.push(`${JSON.stringify(name)}:${isPart ? await jsonText(field, pace) : text(field)}`);
  }
  return `{${fields.join(',')}}`;
}

/** Whether it holds a list worth writing in pieces: a page, or a turn of it. */
function isLarge(value: unknown): boolean {
  if (!isObject(value) || 'toJSON' in value) return false;
  return Object.values(value).some(isLongList);
}

/** A few objects are enough: each may be as large as a record. */
function isLongList(value: unknown): boolean {
  return Array.isArray(value) && (value.length > LONG || value.some(isObject));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function text(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}
