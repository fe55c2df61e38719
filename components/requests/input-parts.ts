import { isJson } from '@interlude/protocol/fields';
import { exceeds } from '@interlude/protocol/json';
import type { ToolCallItem } from '@interlude/protocol/read-models';
import { plural } from '@/components/ui/duration';
import { countLines } from '@/components/ui/format-size';
import { needsBreaks } from '@/components/ui/line-breaks';
import { isPlainName, verbatimPieces } from '@/components/ui/verbatim';

/**
 * One part of a tool's input. Every key becomes one part, so that no special rendering hides another key.
 *
 * `command`, `removed`, `added` and `long` are blocks of text; `field` is a line with its name; `whole` is an input
 * that is not an object, has many or long keys, or whose source contains more than its parsed value.
 */
export interface InputPart {
  kind: 'command' | 'removed' | 'added' | 'long' | 'field' | 'whole';
  /** The key, or ''. */
  name: string;
  text: string;
  /** True if `text` is JSON made from the value. */
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

/** @returns an empty list for an empty input */
export function inputParts({ args, argsText }: Pick<ToolCallItem, 'args' | 'argsText'>): InputPart[] {
  const whole: InputPart = { kind: 'whole', name: '', text: argsText, isJson: false };
  if (args === null || args === undefined) return argsText === '' || argsText === 'null' ? [] : [whole];
  if (typeof args === 'string') return [{ ...whole, text: args }];
  if (typeof args !== 'object' || Array.isArray(args)) return [{ ...whole, text: asJson(args, 2), isJson: true }];
  const parts = isWide(args) ? wideParts(args) : Object.entries(args).map(([name, value]) => partOf(name, value));
  parts.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  return [...parts, ...asWritten(args, argsText)];
}

/** The input's source, if it contains more than its parsed value. */
export function asWritten(args: object, argsText: string): InputPart[] {
  if (argsText === '' || saysTheSame(argsText, args)) return [];
  return [{ kind: 'whole', name: '', text: argsText, isJson: false }];
}

/** More keys are shown as one text: each key is a row, which is expensive to lay out. */
const MAX_PARTS = 30;
/** Maximum total length of names. Values are paged, but names are not. */
const MAX_NAMES = 4_000;
/** Maximum number of elements for special characters in names. */
const MAX_NAME_ELEMENTS = 100;

/** True if the input is shown as one text. */
function isWide(args: object): boolean {
  let count = 0;
  let length = 0;
  let elements = 0;
  for (const name in args) {
    count += 1;
    length += name.length;
    if (count > MAX_PARTS || length > MAX_NAMES) return true;
    elements += nameElements(name);
    if (elements > MAX_NAME_ELEMENTS) return true;
  }
  return false;
}

/** The command first, then the whole input as one text. */
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
  // Quotes distinguish a string from the number or object it looks like.
  if (isJson(value)) return { kind: 'field', name, text: JSON.stringify(value), isJson: true };
  return { kind: 'field', name, text: value, isJson: false };
}

/** Larger values are not indented: deep nesting would multiply their size. */
const MAX_INDENTED = 50_000;

function asJson(value: unknown, indent: number): string {
  const spaces = exceeds(value, Number.POSITIVE_INFINITY, MAX_INDENTED) ? 0 : indent;
  return JSON.stringify(value, null, spaces) ?? 'undefined';
}

/**
 * True if the parsed value contains everything that its source does. Otherwise, the value would hide duplicate keys or
 * numbers beyond double precision.
 */
function saysTheSame(json: string, args: object): boolean {
  let tokens = '';
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)|[^\s"]+/gs)) {
    tokens += token.startsWith('"') ? quotedAlike(token) : token;
  }
  return tokens === JSON.stringify(args);
}

/** Normalizes escapes. */
function quotedAlike(token: string): string {
  try {
    return JSON.stringify(JSON.parse(token));
  } catch {
    return token;
  }
}

/** Inputs up to this size are seen at a glance. */
const [FEW_LINES, FEW_CHARACTERS] = [4, 400];

/** `30 lines, 1,204 characters`; null for a small input. */
export function inputSize(parts: readonly InputPart[]): string | null {
  const characters = parts.reduce((sum, { text }) => sum + text.length, 0);
  const lines = parts.reduce((sum, { text }) => sum + countLines(text), 0);
  if (lines <= FEW_LINES && characters <= FEW_CHARACTERS) return null;
  return `${plural(lines, 'line')}, ${plural(characters, 'character')}`;
}

/** Approximate number of elements of an untruncated name. */
export function nameElements(text: string): number {
  if (isPlainName(text)) return 0;
  const pieces = verbatimPieces(text, 'name');
  return needsBreaks(text) ? 2 * pieces.length : pieces.filter(({ kind }) => kind !== 'text').length;
}
