import {
  COMMA,
  endOfString,
  isClosing,
  isOpening,
  mayBeIllFormed,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '@interlude/protocol/json';
import { MAX_JSON_DEPTH, MAX_RECORD_VALUES, MAX_RECORDS_PER_REQUEST } from '@interlude/protocol/limits';
import type { Yielder } from '@/db/yield-to-loop';
import { decodeStart, decodeUtf8, malformed, parseJsonText, tooDeep } from './parse-request';

interface ParsedBatch {
  value: unknown;
  /** True if a string may hold half a surrogate pair, which `wellFormed` must repair before storing. */
  hasHalves: boolean;
  /** Records with too many values, whose objects and lists stay unparsed text. */
  tooWide: ReadonlySet<unknown>;
}

/** Limits of one slice, in bytes and in values, because even small values take time. */
const READ_BYTES = 128 * 1024;
const READ_VALUES = 10_000;
const SCANNED_AT_ONCE = 64 * 1024;

/**
 * Parses the body of `POST /events` in slices of its `records`, yielding to the event loop in between. Parsing 8 MiB of
 * brackets at once would block the loop for most of a second.
 *
 * @throws AppError `malformed` with the place of the error
 */
export async function parseBatch(bytes: Uint8Array, yielder: Yielder): Promise<ParsedBatch> {
  if (bytes.byteLength === 0) throw malformed('The body is empty. Send a JSON object.');
  const scan = new BatchScan(bytes);
  while (!scan.isOver) {
    scan.go(SCANNED_AT_ONCE);
    await yielder.yieldIfDue();
  }
  const { list } = scan;
  if (scan.valuesOutside > MAX_RECORD_VALUES) {
    throw malformed(`The body may have at most ${MAX_RECORD_VALUES} values outside its records. Remove some.`);
  }
  if (list === null) return read(decodeStart(bytes));
  const frame = read(decodeStart(bytes.subarray(0, list.start)) + decodeUtf8(bytes.subarray(list.end)));
  const records: unknown[] = [];
  const tooWide = new Set<unknown>();
  let hasHalves = frame.hasHalves;
  for (const { start, end, isWide } of slices(list)) {
    const text = isWide
      ? await withNestedAsText(bytes.subarray(start, end), yielder)
      : `[${decodeUtf8(bytes.subarray(start, end))}]`;
    hasHalves ||= mayBeIllFormed(text);
    await yielder.yieldIfDue();
    if (isWide) {
      const record = parseJsonText(text);
      tooWide.add(record);
      records.push(record);
    } else for (const record of parseJsonText(text) as unknown[]) records.push(record);
    await yielder.yieldIfDue();
  }
  (frame.value as { records: unknown }).records = records;
  return { value: frame.value, hasHalves, tooWide };
}

function read(text: string): ParsedBatch {
  return { value: parseJsonText(text), hasHalves: mayBeIllFormed(text), tooWide: new Set() };
}

/** The byte range of a record, and its approximate number of values. */
interface Entry {
  start: number;
  end: number;
  values: number;
}

/** The byte range between the brackets. */
interface RecordList {
  start: number;
  end: number;
  entries: Entry[];
}

/** Groups records to parse together. A record with too many values gets its own group. */
function* slices({ entries }: RecordList): Generator<{ start: number; end: number; isWide: boolean }> {
  let slice: Entry | null = null;
  for (const entry of entries) {
    const isWide = entry.values > MAX_RECORD_VALUES;
    const isFull =
      slice !== null && (entry.end - slice.start > READ_BYTES || slice.values + entry.values > READ_VALUES);
    if (slice !== null && (isWide || isFull)) {
      yield { ...slice, isWide: false };
      slice = null;
    }
    if (isWide) yield { ...entry, isWide };
    else if (slice === null) slice = { ...entry };
    else {
      slice.end = entry.end;
      slice.values += entry.values;
    }
  }
  if (slice !== null) yield { ...slice, isWide: false };
}

/**
 * Scans the raw bytes once, without recursion, for the nesting depth and the byte ranges of `records`. Leaves invalid
 * JSON to the parser.
 */
class BatchScan {
  /** The last `records` of the body, since JSON parsers use the last of several equal names. */
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

  /** @throws AppError `malformed` if the body is nested too deeply or has too many records */
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
    if (this.#depth !== 2 || byte !== OPEN_BRACKET || !this.#hasNames || !this.#isRecordsKey()) return;
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
      throw malformed(
        `records: A request may have at most ${MAX_RECORDS_PER_REQUEST}. Split them across several requests.`,
      );
    entries.push({ start: this.#entryStart, end: index, values: this.#values });
    this.#values = 0;
  }

  #isBlank(end: number): boolean {
    for (let index = this.#entryStart; index < end; index += 1) if ((this.#bytes[index] ?? 0) > 0x20) return false;
    return true;
  }

  #isRecordsKey(): boolean {
    const [start, end] = this.#name;
    return end - start === 'records'.length && decodeUtf8(this.#bytes.subarray(start, end)) === 'records';
  }
}

/** Re-encodes a record with each nested object and list as a string of its JSON. The record may be as large as a request. */
async function withNestedAsText(bytes: Uint8Array, yielder: Yielder): Promise<string> {
  let [depth, copied, start, values, yieldedAt] = [0, 0, 0, 0, 0];
  const parts: string[] = [];
  for (let index = 0; index < bytes.length; index += 1) {
    if (index - yieldedAt >= SCANNED_AT_ONCE) {
      await yielder.yieldIfDue();
      yieldedAt = index;
    }
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === COMMA && depth === 1) values += 1;
    else if (isOpening(byte)) {
      depth += 1;
      if (depth === 2) start = index;
    } else if (isClosing(byte)) {
      depth -= 1;
      if (depth !== 1) continue;
      parts.push(decodeUtf8(bytes.subarray(copied, start)));
      await yielder.yieldIfDue();
      parts.push(JSON.stringify(decodeUtf8(bytes.subarray(start, index + 1))));
      await yielder.yieldIfDue();
      copied = index + 1;
    }
  }
  if (values > MAX_RECORD_VALUES) throw malformed(`A record may have at most ${MAX_RECORD_VALUES} fields. Split it.`);
  return parts.join('') + decodeUtf8(bytes.subarray(copied));
}
