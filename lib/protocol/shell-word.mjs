/**
 * A text as one word of a POSIX shell's command line, so that what is shown can be pasted. Plain JavaScript without a
 * package: `npm start` needs it before packages are installed.
 *
 * @param {string} text
 */
export function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
