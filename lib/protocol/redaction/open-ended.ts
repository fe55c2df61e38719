/**
 * The pattern for a text that may go on: its last group reaches the end of the text, however little there is of it so far.
 *
 * @param pattern ends with a group that ends with a counted run, such as `([a-z]{8,512})`, and at most one lookahead
 * @throws TypeError for any other pattern
 */
export function openEnded(pattern: RegExp): RegExp {
  const source = pattern.source.replace(LAST_LOOKAHEAD, '');
  if (!LAST_COUNT.test(source)) throw new TypeError(`${pattern} does not end with a counted run in a group`);
  const open = source.replace(LAST_COUNT, (_, least: string, more?: string) => `{1,${more ?? least}})`);
  return new RegExp(`${open}$`, pattern.flags.replace('g', ''));
}

const LAST_LOOKAHEAD = /\(\?[=!](?:[^()[\]\\]|\\.|\[(?:\\.|[^\]])*\]|\([^()]*\))*\)$/;
const LAST_COUNT = /\{(\d+)(?:,(\d*))?\}\)$/;
