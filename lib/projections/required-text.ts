/**
 * Folded text without which a message can't match: what an index can tell before the message is looked at. `all` and
 * `any` have at least one part.
 */
export type RequiredText =
  | { kind: 'text'; text: string }
  | { kind: 'all'; parts: RequiredText[] }
  | { kind: 'any'; parts: RequiredText[] };

/** What all of them require; null stands for nothing. */
export function requireAll(parts: readonly (RequiredText | null)[]): RequiredText | null {
  const known = parts.filter((part) => part !== null);
  const [first, second] = known;
  return second === undefined ? (first ?? null) : { kind: 'all', parts: known };
}

/** What one of them requires; nothing, as soon as one requires nothing. */
export function requireAny(parts: readonly (RequiredText | null)[]): RequiredText | null {
  const known = parts.filter((part) => part !== null);
  return known.length < parts.length || known.length === 0 ? null : { kind: 'any', parts: known };
}
