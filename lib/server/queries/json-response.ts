import { maskDigests, redactModel } from '@interlude/protocol/redaction/redact-model';
import { Yielder } from '@/db/yield-to-loop';
import { PLAIN_DIGESTS, type ShownDigests } from '@/lib/server/access/shown-digests';

/** Lists longer than this are serialized entry by entry. */
const LONG = 32;

/** Builds a JSON response. Yields to the event loop while serializing a large model. */
export async function jsonResponse(model: object, status = 200): Promise<Response> {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return new Response(await jsonText(model, new Yielder()), { status, headers });
}

/** `JSON.stringify` in pieces, for JSON values. */
async function jsonText(value: unknown, yielder: Yielder): Promise<string> {
  if (yielder.isDue) await yielder.yieldIfDue();
  if (Array.isArray(value)) {
    if (!isLongList(value)) return JSON.stringify(value);
    const entries: string[] = [];
    for (const entry of value)
      entries.push(isLarge(entry) || yielder.isDue ? await jsonText(entry, yielder) : text(entry));
    return `[${entries.join(',')}]`;
  }
  if (!isLarge(value)) return text(value);
  const fields: string[] = [];
  for (const [name, field] of Object.entries(value as object)) {
    if (field === undefined) continue;
    const isPart = isLongList(field) || isLarge(field) || yielder.isDue;
    fields.push(`${JSON.stringify(name)}:${isPart ? await jsonText(field, yielder) : text(field)}`);
  }
  return `{${fields.join(',')}}`;
}

/** True for a page and for a turn, whose parts are serialized separately. */
function isLarge(value: unknown): boolean {
  if (!isObject(value) || 'toJSON' in value) return false;
  return Object.values(value).some(isLongList);
}

/** A single object makes a list long, because it may be as large as a record. */
function isLongList(value: unknown): boolean {
  return Array.isArray(value) && (value.length > LONG || value.some(isObject));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function text(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}

/** Removes secrets from a read model for a redacted reader, and replaces digests with those that the reader may see. */
export async function redactResponse<Model>(
  model: Model,
  { redacts }: { redacts: boolean },
  digests: ShownDigests,
): Promise<Model> {
  if (typeof model !== 'object' || model === null) return model;
  const yielder = new Yielder();
  const shown = redacts ? await redactModel(model, yielder.maybeYield) : model;
  // Most readers see everything, so their models need no walk.
  return digests === PLAIN_DIGESTS ? shown : maskDigests(shown, digests);
}
