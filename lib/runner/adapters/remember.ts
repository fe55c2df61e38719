/** Keeps `value`, and drops the oldest entry once there are more than `most`. */
export function remember<Key, Value>(kept: Map<Key, Value>, key: Key, value: Value, most: number): void {
  kept.set(key, value);
  if (kept.size > most) kept.delete(kept.keys().next().value as Key);
}
