/** How much a text is, in UTF-16 units: `840 characters`, `51 kB`, `1.4 MB`. */
export function sizeInWords(length: number): string {
  if (length < 1_000) return length === 1 ? '1 character' : `${length} characters`;
  if (length < 999_500) return `${Math.round(length / 1_000)} kB`;
  return `${(length / 1_000_000).toFixed(1)} MB`;
}
