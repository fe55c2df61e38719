const NUMBER = new Intl.NumberFormat('en');

/** How many: `1 hit`, `1,204 hits`. */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${NUMBER.format(count)} ${count === 1 ? one : many}`;
}

/** How much, in bytes: `840 bytes`, `51 KiB`, `1.4 MiB`. */
export function sizeOf(bytes: number): string {
  if (bytes < 1024) return countOf(bytes, 'byte');
  const units = ['KiB', 'MiB', 'GiB'];
  let [size, unit] = [bytes / 1024, 0];
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}
