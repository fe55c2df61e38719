import { plural } from './duration';

/** `840 bytes`, `51 KiB`, `1.4 MiB`. */
export function formatBinaryBytes(bytes: number): string {
  if (bytes < 1024) return plural(bytes, 'byte');
  const units = ['KiB', 'MiB', 'GiB'];
  let [size, unit] = [bytes / 1024, 0];
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** `840 bytes`, `51 kB`, `1.4 MB`, `2.5 GB`. */
export function formatBytes(bytes: number, unit = 'byte'): string {
  if (bytes < 1_000) return plural(bytes, unit);
  if (bytes < 999_500) return `${Math.round(bytes / 1_000)} kB`;
  if (bytes < 999_950_000) return `${(bytes / 1_000_000).toFixed(1)} MB`;
  return `${(bytes / 1_000_000_000).toFixed(1)} GB`;
}

/** Length of a text in UTF-16 units: `840 characters`, `51 kB`, `1.4 MB`. */
export function formatLength(length: number): string {
  return formatBytes(length, 'character');
}

/** Number of line breaks plus one. */
export function countLines(text: string): number {
  let count = 1;
  for (let index = text.indexOf('\n'); index !== -1; index = text.indexOf('\n', index + 1)) count += 1;
  return count;
}
