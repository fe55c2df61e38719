/**
 * Whether a value of JSON holds more values, or in names and texts more UTF-16 units, than so many. Looks at no more of
 * it than it takes to know.
 */
export function exceeds(value: unknown, length: number, values: number): boolean {
  const left: unknown[] = [value];
  while (left.length > 0) {
    const next = left.pop();
    values -= 1;
    if (typeof next === 'string') length -= next.length;
    else if (typeof next === 'object' && next !== null) {
      for (const name in next) {
        length -= name.length;
        left.push((next as Record<string, unknown>)[name]);
        if (left.length > values) return true;
      }
    }
    if (length < 0 || values < 0) return true;
  }
  return false;
}
