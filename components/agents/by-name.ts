const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** As people look for a name: `runner-2` before `Runner-10`. Those that differ in their case alone have an order, too. */
export function byName(a: string, b: string): number {
  return collator.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0);
}
