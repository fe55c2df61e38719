/**
 * JSON with exactly one spelling per value, as defined by RFC 8785: no blanks, the keys of each object in the order of
 * their UTF-16 code units, numbers as ECMAScript writes them. What JSON leaves out (`undefined`) is left out, and half
 * a surrogate pair counts as U+FFFD, which is what becomes of it on its way to the server.
 *
 * Recurses as deep as the value: bound that before.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return textOf(value);
  if (Array.isArray(value)) return `[${value.map((entry) => canonicalJson(entry ?? null)).join(',')}]`;
  if (typeof value === 'object' && value !== null) return objectOf(value as Record<string, unknown>);
  return JSON.stringify(value) ?? 'null';
}

function objectOf(value: Record<string, unknown>): string {
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
    .map((key) => `${textOf(key)}:${canonicalJson(value[key])}`);
  return `{${members.join(',')}}`;
}

function textOf(value: string): string {
  return JSON.stringify(value.isWellFormed() ? value : value.toWellFormed());
}
