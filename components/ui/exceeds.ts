/**
 * True if a JSON value has more than `values` nested values, or more than `length` UTF-16 units in its keys and strings.
 * Stops counting at the limit.
 */
export function exceeds(value: unknown, length: number, values: number): boolean {
  const remaining: unknown[] = [value];
  while (remaining.length > 0) {
    const next = remaining.pop();
    values -= 1;
    if (typeof next === 'string') length -= next.length;
    else if (typeof next === 'object' && next !== null) {
      for (const name in next) {
        length -= name.length;
        remaining.push((next as Record<string, unknown>)[name]);
        if (remaining.length > values) return true;
      }
    }
    if (length < 0 || values < 0) return true;
  }
  return false;
}
