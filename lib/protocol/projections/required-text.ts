/**
 * Folded text without which a message can't match, so that an index can rule it out unread. `all` and `any` have at
 * least one part.
 */
export type RequiredText =
  | { kind: 'text'; text: string }
  | { kind: 'all'; parts: RequiredText[] }
  | { kind: 'any'; parts: RequiredText[] };

/** What all of them require together; null requires nothing. */
export function requireAll(parts: readonly (RequiredText | null)[]): RequiredText | null {
  const known = parts.filter((part) => part !== null);
  const [first, second] = known;
  return second === undefined ? (first ?? null) : { kind: 'all', parts: known };
}

/** What any one of them requires; nothing if one of them requires nothing. */
export function requireAny(parts: readonly (RequiredText | null)[]): RequiredText | null {
  const known = parts.filter((part) => part !== null);
  return known.length < parts.length || known.length === 0 ? null : { kind: 'any', parts: known };
}
