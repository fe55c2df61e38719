import { type Fields, isObject, parseJson, textOf } from '@interlude/protocol/fields';

/** A stretch of a physical line. */
export interface LineStretch {
  /** The record; null for text that is none. */
  fields: Fields | null;
  /** The text of the record, or what can't be read. */
  source: string;
}

/** The beginning of a record inside a line: an object with one of the first fields of a transcript's records. */
const BEGINNING =
  /\{"(?:type|uuid|parentUuid|logicalParentUuid|timestamp|sessionId|isSidechain|agentId|message|attachment|operation)":/g;
/** Every record has one of these fields. The parts of a record, which a tear may lay bare, have none. */
const NAMES = ['uuid', 'sessionId', 'messageId', 'leafUuid'] as const;
/** Characters that are looked at, as a multiple of the line's length: a hostile line must not cost more. */
const MOST_PASSES = 4;

/**
 * The records of one physical line, in order. A crash can leave zeros before a record, a missing newline joins two, and
 * two writers splice one into another.
 *
 * @see anthropics/claude-code#49876, #81843
 */
export function recordsIn(text: string): readonly LineStretch[] {
  if (text.trim() === '') return [];
  const whole = parseJson(text);
  if (isObject(whole)) return [{ fields: whole, source: text }];
  const found: LineStretch[] = [];
  let [end, left] = [0, text.length * MOST_PASSES];
  const gapUpTo = (at: number) => {
    const source = text.slice(end, at);
    if (source.trim() !== '') found.push({ fields: null, source });
  };
  for (const { index } of text.matchAll(BEGINNING)) {
    if (index < end) continue;
    if (left <= 0) break;
    const close = endOfObject(text, index);
    left -= (close ?? text.length) - index;
    const fields = close === null ? null : parseJson(text.slice(index, close));
    if (close === null || !isRecord(fields) || isInside(text, index, close)) continue;
    gapUpTo(index);
    found.push({ fields, source: text.slice(index, close) });
    end = close;
  }
  gapUpTo(text.length);
  return withTornRecord(found);
}

/** Puts the record together whose parts stand around others. */
function withTornRecord(found: readonly LineStretch[]): readonly LineStretch[] {
  const gaps = found.filter(({ fields }) => fields === null);
  if (gaps.length < 2) return found;
  const source = gaps.map((gap) => gap.source).join('');
  const fields = parseJson(source);
  if (!isRecord(fields)) return found;
  const whole = { fields, source };
  return found.flatMap((stretch) => (stretch === gaps[0] ? whole : stretch.fields === null ? [] : stretch));
}

/** True for a value of a torn object, such as the input of a tool call, which may look like a record. */
function isInside(text: string, from: number, to: number): boolean {
  const [before = '', after = ''] = [text[from - 1], text[to]];
  return (/[:,[]/.test(before) && /[,}\]]/.test(after)) || (before === ':' && after === '');
}

function isRecord(value: unknown): value is Fields {
  return isObject(value) && NAMES.some((name) => textOf(value[name]) !== null);
}

/** @returns the place behind the brace that closes the object at `at`; null if none does */
function endOfObject(text: string, at: number): number | null {
  let depth = 0;
  let inString = false;
  for (let index = at; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (inString) {
      if (unit === BACKSLASH) index += 1;
      else if (unit === QUOTE) inString = false;
    } else if (unit === QUOTE) inString = true;
    else if (unit === OPEN) depth += 1;
    else if (unit === CLOSE) {
      depth -= 1;
      if (depth === 0) return index + 1;
    }
  }
  return null;
}

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN = 123;
const CLOSE = 125;
