import {
  COMMA,
  endOfString,
  isClosing,
  isOpening,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '@interlude/protocol/json-measure';
import { MAX_JSON_DEPTH, MAX_RECORD_VALUES, MAX_RECORDS_PER_REQUEST } from '@interlude/protocol/limits';
import { mayHaveHalves } from '@interlude/protocol/well-formed';
import type { Yielder } from '@/db/yield-to-loop';
import { decodeStart, decodeUtf8, malformed, parseJsonText, tooDeep } from './parse-request';

export interface ParsedBatch {
  /** The body; its `records` are in their order. */
  value: unknown;
  /** Some string in it may have half a surrogate pair: it can be read, but not stored before `wellFormed`. */
  hasHalves: boolean;
  /** The `records` that hold too many values: the objects and lists in them were left as text. */
  tooWide: ReadonlySet<unknown>;
}

/** How much of `records` is parsed in one go, in bytes and in values: each value takes time, however small it is. */
const READ_BYTES = 128 * 1024;
const READ_VALUES = 10_000;
const SCANNED_AT_ONCE = 64 * 1024;

/**
 * The body of `POST /events`, parsed as JSON in pieces of its `records`, so that others get turns of the event loop: 8 MiB
 * in one piece would hold them up for most of a second if it is all brackets.
 *
 * @throws AppError `malformed` that says where
 */
export async function parseBatch(bytes: Uint8Array, yielder: Yielder): Promise<ParsedBatch> {
  if (bytes.byteLength === 0) throw malformed('The body is empty. Send a JSON object.');
  const scan = new BatchScan(bytes);
  while (!scan.isOver) {
    scan.go(SCANNED_AT_ONCE);
    await yielder.rest();
  }
  const { list } = scan;
  if (scan.valuesOutside > MAX_RECORD_VALUES) {
    throw malformed(`The body holds more than ${MAX_RECORD_VALUES} values outside of its records.`);
  }
  if (list === null) return read(decodeStart(bytes));
  const frame = read(decodeStart(bytes.subarray(0, list.start)) + decodeUtf8(bytes.subarray(list.end)));
  const records: unknown[] = [];
  const tooWide = new Set<unknown>();
  let hasHalves = frame.hasHalves;
  for (const { start, end, isWide } of pieces(list)) {
    const text = isWide
      ? await withTexts(bytes.subarray(start, end), yielder)
      : `[${decodeUtf8(bytes.subarray(start, end))}]`;
    hasHalves ||= mayHaveHalves(text);
    await yielder.rest();
    if (isWide) {
      const record = parseJsonText(text);
      tooWide.add(record);
      records.push(record);
    } else for (const record of parseJsonText(text) as unknown[]) records.push(record);
    await yielder.rest();
  }
  (frame.value as { records: unknown }).records = records;
  return { value: frame.value, hasHalves, tooWide };
}

function read(text: string): ParsedBatch {
  return { value: parseJsonText(text), hasHalves: mayHaveHalves(text), tooWide: new Set() };
}

/** One of `records`: where its bytes are, and roughly how many values it holds. */
interface Entry {
  start: number;
  end: number;
  values: number;
}

/** Between the brackets. */
interface RecordList {
  start: number;
  end: number;
  entries: Entry[];
}

/** Entries that are parsed together; one that is too wide comes alone. */
function* pieces({ entries }: RecordList): Generator<{ start: number; end: number; isWide: boolean }> {
  let piece: Entry | null = null;
  for (const entry of entries) {
    const isWide = entry.values > MAX_RECORD_VALUES;
    const isFull =
      piece !== null && (entry.end - piece.start > READ_BYTES || piece.values + entry.values > READ_VALUES);
    if (piece !== null && (isWide || isFull)) {
      yield { ...piece, isWide: false };
      piece = null;
    }
    if (isWide) yield { ...entry, isWide };
    else if (piece === null) piece = { ...entry };
    else {
      piece.end = entry.end;
      piece.values += entry.values;
    }
  }
  if (piece !== null) yield { ...piece, isWide: false };
}

/**
 * One pass without recursion over the raw bytes: how deep they go, and where the entries of `records` begin and end.
 * Text that is not JSON is left for the parser to refuse: it gets every byte.
 */
class BatchScan {
  /** The last `records` of the body: if a name occurs twice, the last one counts. */
  list: RecordList | null = null;
  valuesOutside = 0;
  readonly #bytes: Uint8Array;
  #index = 0;
  #depth = 0;
  #values = 0;
  #entryStart = -1;
  #hasNames = false;
  #name: [number, number] = [0, 0];

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isOver(): boolean {
    return this.#index >= this.#bytes.length;
  }

  /** @throws AppError `malformed` if it is too deep, or has too many records */
  go(count: number): void {
    const bytes = this.#bytes;
    const until = Math.min(bytes.length, this.#index + count);
    let index = this.#index;
    for (; index < until; index += 1) {
      const byte = bytes[index];
      if (byte === QUOTE) {
        const end = endOfString(bytes, index);
        if (this.#depth === 1) this.#name = [index + 1, end];
        index = end;
      } else if (byte === COMMA) this.#comma(index);
      else if (isOpening(byte)) this.#open(index, byte);
      else if (isClosing(byte)) this.#close(index);
    }
    this.#index = index;
  }

  #comma(index: number): void {
    this.#values += 1;
    if (this.#entryStart === -1 || this.#depth !== 2) return;
    this.#endEntry(index);
    this.#entryStart = index + 1;
  }

  #open(index: number, byte: number | undefined): void {
    this.#values += 1;
    this.#depth += 1;
    if (this.#depth > MAX_JSON_DEPTH) throw tooDeep(index);
    if (this.#depth === 1) this.#hasNames = byte === OPEN_BRACE;
    if (this.#depth !== 2 || byte !== OPEN_BRACKET || !this.#hasNames || !this.#isRecords()) return;
    this.#leaveOutside();
    this.list = { start: index + 1, end: this.#bytes.length, entries: [] };
    this.#entryStart = index + 1;
  }

  #close(index: number): void {
    this.#depth -= 1;
    if (this.#depth === 0) this.#leaveOutside();
    if (this.#entryStart === -1 || this.#depth !== 1) return;
    const isEmpty = this.list?.entries.length === 0 && this.#isBlank(index);
    if (!isEmpty) this.#endEntry(index);
    if (this.list !== null) this.list.end = index;
    this.#entryStart = -1;
    this.#values = 0;
  }

  #leaveOutside(): void {
    this.valuesOutside += this.#values;
    this.#values = 0;
  }

  #endEntry(index: number): void {
    const { entries } = this.list as RecordList;
    if (entries.length === MAX_RECORDS_PER_REQUEST)
      throw malformed(`records: A request may hold ${MAX_RECORDS_PER_REQUEST}. Send them in parts.`);
    entries.push({ start: this.#entryStart, end: index, values: this.#values });
    this.#values = 0;
  }

  #isBlank(end: number): boolean {
    for (let at = this.#entryStart; at < end; at += 1) if ((this.#bytes[at] ?? 0) > 0x20) return false;
    return true;
  }

  #isRecords(): boolean {
    const [start, end] = this.#name;
    return end - start === 'records'.length && decodeUtf8(this.#bytes.subarray(start, end)) === 'records';
  }
}

/** The JSON of a record with every object and list replaced by its JSON as text. It may be as large as a request. */
async function withTexts(bytes: Uint8Array, yielder: Yielder): Promise<string> {
  let [depth, copied, begun, values, rested] = [0, 0, 0, 0, 0];
  const parts: string[] = [];
  for (let index = 0; index < bytes.length; index += 1) {
    if (index - rested >= SCANNED_AT_ONCE) {
      await yielder.rest();
      rested = index;
    }
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === COMMA && depth === 1) values += 1;
    else if (isOpening(byte)) {
      depth += 1;
      if (depth === 2) begun = index;
    } else if (isClosing(byte)) {
      depth -= 1;
      if (depth !== 1) continue;
      parts.push(decodeUtf8(bytes.subarray(copied, begun)));
      await yielder.rest();
      parts.push(JSON.stringify(decodeUtf8(bytes.subarray(begun, index + 1))));
      await yielder.rest();
      copied = index + 1;
    }
  }
  if (values > MAX_RECORD_VALUES) throw malformed(`A record has more than ${MAX_RECORD_VALUES} fields.`);
  return parts.join('') + decodeUtf8(bytes.subarray(copied));
}
