/** Whether a field of one is another in the other, or only one of them has it, apart from some. */
export function differs<T extends object>(a: T, b: T, except: ReadonlySet<keyof T>): boolean {
  const fields = new Set([...Object.keys(a), ...Object.keys(b)] as (keyof T)[]);
  for (const field of fields) if (!except.has(field) && a[field] !== b[field]) return true;
  return false;
}
