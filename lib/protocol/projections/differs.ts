/** Whether two objects differ in a field, or one lacks it, apart from the excepted fields. */
export function differs<T extends object>(a: T, b: T, except: ReadonlySet<keyof T>): boolean {
  const fields = new Set([...Object.keys(a), ...Object.keys(b)] as (keyof T)[]);
  for (const field of fields) if (!except.has(field) && a[field] !== b[field]) return true;
  return false;
}
