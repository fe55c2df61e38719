import { isJson } from '@interlude/protocol/fields';
import type { ToolCallItem } from '@interlude/protocol/read-models';
import { countLines } from '@/components/ui/count-lines';
import { plural } from '@/components/ui/duration';
import { isLarger } from '@/components/ui/is-larger';
import { nameElements } from '@/components/ui/name';

/**
 * One thing a tool was given. Every key of an input is one part, whatever else the input has: a look of its own never
 * hides what stands beside it.
 *
 * `command`, `removed`, `added` and `long` are texts that are shown as blocks; `field` is a line with its name; `whole`
 * is an input that is no object or has very many keys, or long ones, or its own words where they say more than what was
 * read of them.
 */
export interface InputPart {
  kind: 'command' | 'removed' | 'added' | 'long' | 'field' | 'whole';
  /** The key. '' where there is none. */
  name: string;
  text: string;
  /** `text` is JSON and not itself what was given. */
  isJson: boolean;
}

const BLOCKS: ReadonlyMap<string, InputPart['kind']> = new Map([
  ['command', 'command'],
  ['old_string', 'removed'],
  ['new_string', 'added'],
  ['content', 'long'],
  ['prompt', 'long'],
]);

const ORDER: readonly InputPart['kind'][] = ['command', 'field', 'removed', 'added', 'long', 'whole'];

/** @returns none for an input that is empty */
export function inputParts({ args, argsText }: Pick<ToolCallItem, 'args' | 'argsText'>): InputPart[] {
  const whole: InputPart = { kind: 'whole', name: '', text: argsText, isJson: false };
  if (args === null || args === undefined) return argsText === '' || argsText === 'null' ? [] : [whole];
  if (typeof args === 'string') return [{ ...whole, text: args }];
  if (typeof args !== 'object' || Array.isArray(args)) return [{ ...whole, text: asJson(args, 2), isJson: true }];
  const parts = isWide(args) ? wideParts(args) : Object.entries(args).map(([name, value]) => partOf(name, value));
  parts.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  return [...parts, ...asWritten(args, argsText)];
}

/** An input as it came, where that says more than what was read of it. */
export function asWritten(args: object, argsText: string): InputPart[] {
  if (argsText === '' || saysTheSame(argsText, args)) return [];
  return [{ kind: 'whole', name: '', text: argsText, isJson: false }];
}

/** More keys than tools have: each is a row of its own, which costs a browser more to lay out than what stands in it. */
const MOST_PARTS = 30;
/** More of names than anybody reads beside a value. What is long is shown page by page, which a name can't be. */
const MOST_NAMES = 4_000;
/** Of the elements that signs in names are. */
const MOST_NAME_SIGNS = 100;

/** Whether it is shown as one text. */
function isWide(args: object): boolean {
  let count = 0;
  let length = 0;
  let signs = 0;
  for (const name in args) {
    count += 1;
    length += name.length;
    if (count > MOST_PARTS || length > MOST_NAMES) return true;
    signs += nameElements(name);
    if (signs > MOST_NAME_SIGNS) return true;
  }
  return false;
}

/** What runs comes first, then all of it as one text, of which as much is shown as of any long one. */
function wideParts(args: object): InputPart[] {
  const { command } = args as { command?: unknown };
  const whole: InputPart = { kind: 'whole', name: '', text: asJson(args, 1), isJson: true };
  return typeof command === 'string' ? [partOf('command', command), whole] : [whole];
}

function partOf(name: string, value: unknown): InputPart {
  if (typeof value !== 'string') {
    return { kind: 'field', name, text: asJson(value, 2), isJson: true };
  }
  const kind = BLOCKS.get(name);
  if (kind !== undefined) return { kind, name, text: value, isJson: false };
  // A text that reads like a number or an object is told from one by its quotes.
  if (isJson(value)) return { kind: 'field', name, text: JSON.stringify(value), isJson: true };
  return { kind: 'field', name, text: value, isJson: false };
}

/** Of more values, deep within others, the spaces before each line would be many times what they hold. */
const MOST_INDENTED = 50_000;

function asJson(value: unknown, indent: number): string {
  const spaces = isLarger(value, Number.POSITIVE_INFINITY, MOST_INDENTED) ? 0 : indent;
  return JSON.stringify(value, null, spaces) ?? 'undefined';
}

/**
 * Whether the words an input came in say no more than what was read of them: a key that is there twice, or a number
 * with more digits than a number here can hold, is otherwise seen by nobody.
 */
function saysTheSame(json: string, args: object): boolean {
  let tokens = '';
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)|[^\s"]+/gs)) {
    tokens += token.startsWith('"') ? quotedAlike(token) : token;
  }
  return tokens === JSON.stringify(args);
}

/** The same string may be escaped in several ways. */
function quotedAlike(token: string): string {
  try {
    return JSON.stringify(JSON.parse(token));
  } catch {
    return token;
  }
}

/** `3 lines, 120 characters` */
export function inputSize(parts: readonly InputPart[]): string {
  const characters = parts.reduce((sum, { text }) => sum + text.length, 0);
  const lines = parts.reduce((sum, { text }) => sum + countLines(text), 0);
  return `${plural(lines, 'line')}, ${plural(characters, 'character')}`;
}
