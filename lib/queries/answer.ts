import { Pace } from '@/db/next-turn';

/** Lists longer than this are written entry by entry. */
const LONG = 32;

/** A read model as the body of an answer. A large one is written in pieces, and others get their turns between. */
export async function answer(model: object): Promise<Response> {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return new Response(await jsonText(model, new Pace()), { headers });
}

/** What `JSON.stringify` says of JSON values. */
export async function jsonText(value: unknown, pace: Pace): Promise<string> {
  await pace.rest();
  if (Array.isArray(value)) {
    if (value.length <= LONG && !value.some(isLarge)) return JSON.stringify(value);
    const entries: string[] = [];
    for (const entry of value) entries.push(isLarge(entry) || pace.isDue ? await jsonText(entry, pace) : text(entry));
    return `[${entries.join(',')}]`;
  }
  if (!isLarge(value)) return text(value);
  const fields: string[] = [];
  for (const [name, field] of Object.entries(value as object)) {
    if (field !== undefined) fields.push(`${JSON.stringify(name)}:${await jsonText(field, pace)}`);
  }
  return `{${fields.join(',')}}`;
}

/** Whether it is an object that holds a list worth writing in pieces: a page, or a turn of it. */
function isLarge(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return false;
  return Object.values(value).some((field) => Array.isArray(field) && (field.length > LONG || field.some(isLarge)));
}

function text(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}
