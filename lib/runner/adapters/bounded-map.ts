/** Sets an entry, and evicts the oldest one once the map holds more than `max`. */
export function setBounded<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, max: number): void {
  map.set(key, value);
  if (map.size > max) map.delete(map.keys().next().value as Key);
}
