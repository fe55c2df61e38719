import { MAX_ID_LENGTH } from '@/lib/protocol/limits';
import { redactedText } from './redacted-text';
import { namedKind } from './secret-places';

/** How many secrets were taken out. */
export interface Tally {
  redacted: number;
}

/**
 * What an agent, a person or a runner filled in as they liked: the names in there are theirs, so an `id` is no id of
 * ours, and a name may be a secret or say that its value is one.
 */
export const FREE: ReadonlySet<string> = new Set([
  'args',
  'input',
  'status',
  'record',
  'content',
  'rawEvent',
  'snapshot',
]);

/** Names of what has to stay as it is, or nothing could be asked for, put in order or found again. */
const ADDRESS = /^(?:id|ids|position|digest|hash|next|replyTo)$|(?:Id|Ids|Position|_id|_ids)$/;

export function isAddress(name: string, value: string): boolean {
  return ADDRESS.test(name) && value.length <= MAX_ID_LENGTH;
}

/**
 * A JSON value without secrets in any of its texts, whatever it is of. What holds none is the same object.
 *
 * @param isFree whether the names in it are anybody's
 */
export function redactValue(value: unknown, tally: Tally, isFree: boolean, name = ''): unknown {
  if (typeof value === 'string') return redactField(name, value, tally, isFree);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const entries = value.map((entry) => redactValue(entry, tally, isFree, name));
    return entries.some((entry, at) => entry !== value[at]) ? entries : value;
  }
  let hasChanged = false;
  const fields = Object.entries(value).map(([key, field]) => {
    const next = redactValue(field, tally, isFree || FREE.has(key), key);
    const nextKey = isFree ? counted(key, tally) : key;
    hasChanged ||= next !== field || nextKey !== key;
    return [nextKey, next] as const;
  });
  return hasChanged ? Object.fromEntries(fields) : value;
}

export function redactField(name: string, text: string, tally: Tally, isFree: boolean): string {
  if (!isFree && isAddress(name, text)) return text;
  const kind = isFree ? namedKind(name, text) : null;
  if (kind === null) return counted(text, tally);
  tally.redacted += 1;
  return `[redacted: ${kind}]`;
}

/** A text without its secrets, which are counted. */
export function counted(text: string, tally: Tally): string {
  const { text: shown, redacted } = redactedText(text);
  tally.redacted += redacted;
  return shown;
}
