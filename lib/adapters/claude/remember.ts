/** Keeps `value`, and of all that is kept the `most` that came last. */
export function remember<Value>(kept: Map<string, Value>, key: string, value: Value, most: number): void {
  kept.set(key, value);
  if (kept.size > most) kept.delete(kept.keys().next().value as string);
}
