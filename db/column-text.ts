/**
 * Text that is safe in a column of its own. SQLite stores a NUL, but libSQL cuts the text off there when it is read
 * back. Inside a JSON column it stays escaped and needs nothing. (Half a surrogate pair, at which libSQL would end the
 * process, does not come this far: every door makes its strings well-formed.)
 */
export function columnText(value: string): string {
  return value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value;
}
