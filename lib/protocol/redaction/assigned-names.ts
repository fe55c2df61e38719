import { type NamedSecret, secretName } from './secret-names';

/** The name before a sign of assignment, what stands between them, and where the name starts. */
export interface AssignedName {
  name: string;
  closing: string;
  start: number;
}

/** Most characters of a name. */
const LONGEST_NAME = 96;

/** A table of ASCII characters. Faster than a pattern, for each sign of each line. */
function tableOf(characters: RegExp): Uint8Array {
  return Uint8Array.from({ length: 128 }, (_, code) => (characters.test(String.fromCharCode(code)) ? 1 : 0));
}
export const BLANK = tableOf(/[ \t]/);
const CLOSING = tableOf(/["'`\])\\?!*]/);
const IN_NAME = tableOf(/[\w.$-]/);
const QUOTE = tableOf(/["'`]/);

export function isOf(table: Uint8Array, text: string, at: number): boolean {
  return table[text.charCodeAt(at)] === 1;
}

/** True if the characters beside a sign allow an assignment. */
export function mayAssign(text: string, at: number, sign: string): boolean {
  if (sign === '|') return (isOf(BLANK, text, at - 1) && isOf(BLANK, text, at + 1)) || isOf(IN_NAME, text, at - 1);
  if (sign === '(') return isOf(IN_NAME, text, at - 1) && /[\s"'`\\@a-zA-Z[]/.test(text.charAt(at + 1));
  if (sign !== ',') return true;
  let end = at;
  while (end > 0 && at - end < 8 && isOf(BLANK, text, end - 1)) end -= 1;
  return isOf(QUOTE, text, end - 1);
}

/** The name before a sign, and what closes it: a quote, brackets. */
export function nameBefore(text: string, at: number, sign: string): AssignedName {
  let end = at;
  const least = Math.max(0, at - 40);
  if (sign !== '(' && sign !== '>') while (end > least && isOf(BLANK, text, end - 1)) end -= 1;
  let nameEnd = end;
  if (sign !== '(') {
    while (nameEnd > 0 && end - nameEnd < 8 && isOf(CLOSING, text, nameEnd - 1)) nameEnd -= 1;
    if (text.charAt(nameEnd - 1) === '[') nameEnd -= 1;
  }
  let start = nameEnd;
  const first = Math.max(0, nameEnd - LONGEST_NAME);
  while (start > first && isOf(IN_NAME, text, start - 1)) start -= 1;
  return { name: text.slice(start, nameEnd), closing: text.slice(nameEnd, end), start };
}

/** Words that end a name of several words. */
const SECOND_WORD = /^(?:keys?|codes?|phrase|word|string|id)$/i;

/** A name of one word, or of several: `Secret access key: …`. */
export function nameOf(text: string, name: string, closing: string, start: number): NamedSecret | null {
  const isAuth = text.charAt(start - 1) === ':' && name.endsWith('_auth');
  const own = secretName(isAuth ? `:${name}` : name);
  if (own !== null && own.strength === 'strong') return own;
  if (closing !== '' || text.charAt(start - 1) !== ' ' || !SECOND_WORD.test(name)) return own;
  const words = /((?:[A-Za-z][\w-]{0,24} ){1,3})$/.exec(text.slice(Math.max(0, start - 80), start))?.[1];
  if (words === undefined) return own;
  const several = secretName(`${words}${name}`);
  return several?.strength === 'strong' ? several : own;
}

/** True if its line has only a prompt, an indent or `export` before it. */
export function lineBegins(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - 48), at);
  return /(?:^|\n)[\s>+$#-]{0,24}(?:(?:export|set|setx|declare|local|readonly|typeset|env|ENV|ARG|Environment=)(?: -\w{1,3})? )?(?:[\w.-]*\.)?$/.test(
    before,
  );
}
