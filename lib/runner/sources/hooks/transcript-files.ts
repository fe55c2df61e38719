import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Fields, fieldsOf, isObject, parseJson, textOf } from '@interlude/protocol/fields';
import { remember } from '../../adapters/remember';
import type { MirrorState } from './mirror-state';

/** How far a session's files have been told: the part of a mirror's state that is theirs. */
export type FilesRead = Pick<MirrorState, 'file' | 'main' | 'subagents' | 'last' | 'lastOf'>;

export interface TranscriptFilesOptions {
  read: FilesRead;
  /** Subagents whose own files are worth reading, by what was read before. */
  subagents: () => readonly string[];
  /** Lines that were gained, each once. */
  onLines: (lines: readonly TranscriptLine[]) => void;
  log: (level: 'info' | 'warn', message: string) => void;
  /** Most lines that are known by name. */
  mostKeys?: number;
}

const MOST_KEYS = 20_000;

export interface TranscriptLine {
  fields: Record<string, unknown>;
  /** Names the line within the session. */
  key: string;
}

/**
 * The files of one session: its own, and one of each subagent.
 *
 * Ordering: lines come as they stand in a file; a subagent's file is read behind the session's own.
 * Failure: a transcript that was cut off, replaced or rewritten is read from its beginning, and lines that were read
 * before are left out: those that are known by name, and all that stand before the first of them.
 */
export class TranscriptFiles {
  readonly #options: TranscriptFilesOptions;
  readonly #read: FilesRead;
  /** Keys of the lines read last; a transcript names each line, and bookkeeping that has no name is never told. */
  readonly #seen = new Map<string, true>();
  /** The key of the record that was read last, by the subagent in whose file; null for the session's own. */
  readonly #previous = new Map<string | null, string>();

  constructor(options: TranscriptFilesOptions) {
    this.#options = options;
    this.#read = options.read;
  }

  get #mostKeys(): number {
    return this.#options.mostKeys ?? MOST_KEYS;
  }

  has(key: string): boolean {
    return this.#seen.has(key);
  }

  /** All there is to read by now. */
  async readNewLines(): Promise<void> {
    while (await this.#readSome()) {
      // more waits
    }
  }

  /** Reads again what was told before; `onLines` is called for it too. */
  async reread(was: FilesRead): Promise<void> {
    this.#read.main = await this.#reread(was.file, null, was.main, was.last);
    for (const [id, place] of Object.entries(was.subagents)) {
      const again = await this.#reread(this.#file(id), id, place, was.lastOf[id] ?? was.last);
      if (again !== null) this.#read.subagents[id] = again;
    }
  }

  /** @returns whether there is more */
  async #readSome(): Promise<boolean> {
    const { log } = this.#options;
    const read = await this.#gained(this.#read.file, this.#read.main);
    if (read !== null) {
      if (read.restarted) log('info', `the transcript ${this.#read.file} starts over`);
      this.#read.main = read.place;
      this.#take(null, read.lines);
    }
    let more = read?.more === true;
    for (const id of this.#options.subagents()) {
      const its = await this.#gained(this.#file(id), this.#read.subagents[id] ?? null);
      if (its === null || its.place.offset === this.#read.subagents[id]?.offset) continue;
      this.#read.subagents[id] = its.place;
      this.#take(id, its.lines);
      more ||= its.more;
    }
    return more;
  }

  /** What a file has gained. Of one that begins anew, what was told and is not known by name any more is passed over. */
  async #gained(file: string, place: FilePosition | null): Promise<LinesRead | null> {
    const read = await readOn(file, place);
    if (!read?.restarted || this.#seen.size < this.#mostKeys) return read;
    // Not by a name that is made of the text: bookkeeping may say the same twice.
    const { found, end } = await scan(file, ({ fields }) => this.#seen.has(textOf(fields?.uuid) ?? ''));
    // The same file, cut off before all that is known: nothing in it is new.
    const behind = found ?? (read.place.ino === place?.ino ? end : null);
    if (behind === null) return read;
    return { ...read, lines: [], place: { ino: read.place.ino, offset: behind }, more: true };
  }

  #take(subagent: string | null, lines: readonly { text: string }[]): void {
    if (lines.length === 0) return;
    this.#options.onLines(lines.flatMap(({ text }) => this.#linesOf(subagent, text)));
  }

  /** Every record of a physical line that was not here before, with a line in place of what can't be read. */
  #linesOf(subagent: string | null, text: string): TranscriptLine[] {
    return parseRecords(text).flatMap(({ fields, source }) => {
      if (fields !== null) {
        const key = lineKey(fields, source);
        this.#previous.set(subagent, key);
        const line = this.#lineOf(fields, key);
        if (line !== null && subagent === null) this.#read.last = key;
        else if (line !== null) this.#read.lastOf[subagent as string] = key;
        return line ?? [];
      }
      // Named after its place as well: damage may look the same twice.
      const key = lineKey(null, `${this.#previous.get(subagent)}\n${source}`);
      this.#previous.set(subagent, key);
      const reason = `${source.length.toLocaleString('en')} characters of the transcript can’t be read.`;
      const gap = this.#lineOf({ type: 'unreadable', reason }, key);
      if (gap !== null)
        this.#options.log('warn', `${source.length} characters of ${this.#file(subagent)} can't be read`);
      return gap ?? [];
    });
  }

  /** @returns null for what was here before */
  #lineOf(fields: Record<string, unknown>, key: string): TranscriptLine | null {
    if (this.#seen.has(key)) return null;
    remember(this.#seen, key, true, this.#mostKeys);
    // The id of what was typed while a turn ran is that of its place in the queue.
    const { source_uuid } = fieldsOf(fields.attachment);
    if (typeof source_uuid === 'string') remember(this.#seen, source_uuid, true, this.#mostKeys);
    return { fields, key };
  }

  /** @returns up to where the file has been told */
  async #reread(
    file: string,
    subagent: string | null,
    place: FilePosition | null,
    last: string | null,
  ): Promise<FilePosition | null> {
    if (place === null) return null;
    let read = await readOn(file, null, place.offset);
    if (read === null) return place;
    const isSame = read.place.ino === place.ino;
    // Another file stands there: what was told ends at the line that was told last, if it is in it.
    const isLast = ({ fields, source }: LineSegment) => fields !== null && lineKey(fields, source) === last;
    if (!isSame && (last === null || (await scan(file, isLast)).found === null)) return null;
    for (;;) {
      for (const { text, offset } of read.lines) {
        this.#take(subagent, [{ text }]);
        const behind = offset + Buffer.byteLength(text) + 1;
        if (!isSame && this.#lastIn(subagent) === last) return { ino: read.place.ino, offset: behind };
      }
      if (!read.more) return isSame ? place : read.place;
      const next = await readOn(file, read.place, isSame ? place.offset : undefined);
      if (next === null || next.restarted) return read.place;
      read = next;
    }
  }

  #lastIn(subagent: string | null): string | null {
    return subagent === null ? this.#read.last : (this.#read.lastOf[subagent] ?? null);
  }

  #file(subagent: string | null): string {
    const { file } = this.#read;
    if (subagent === null) return file;
    return join(
      dirname(file),
      basename(file, '.jsonl'),
      'subagents',
      `agent-${subagent.replace(/[^\w-]/g, '_')}.jsonl`,
    );
  }
}

/** @returns where the first line that is looked for begins; and where the last whole line ends, where it is none of them */
async function scan(
  file: string,
  isIt: (stretch: LineSegment) => boolean,
): Promise<{ found: number | null; end: number }> {
  let read = await readOn(file, null);
  while (read !== null) {
    const found = read.lines.find(({ text }) => parseRecords(text).some(isIt));
    const end = read.place.offset;
    if (found !== undefined) return { found: found.offset, end };
    if (!read.more) return { found: null, end };
    read = await readOn(file, read.place);
  }
  return { found: null, end: 0 };
}

/** The name of a transcript's line: its own, or for bookkeeping that has none one made of its text. */
function lineKey(line: unknown, text: string): string {
  return textOf(fieldsOf(line).uuid) ?? createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** How far a file has been read: which file, and up to where. */
export interface FilePosition {
  /** Inode: another file may come to stand under the same name. */
  ino: number;
  offset: number;
}

interface FileLine {
  text: string;
  /** Where the line begins. */
  offset: number;
}

interface LinesRead {
  lines: FileLine[];
  place: FilePosition;
  /** The file was replaced or cut off: it was read from its beginning. */
  restarted: boolean;
  /** There is more: ask again at once. */
  more: boolean;
}

const STEP_BYTES = 4 * 1024 * 1024;
/** A line beyond this is no line of a transcript; it is skipped. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
const NEWLINE = 10;

/**
 * The whole lines a growing file has gained.
 *
 * Ordering: as they stand in the file. A line counts once its newline is written.
 * Failure: a file that is not there (yet, any more) has gained nothing. One that shrank or was replaced is read again
 * from its beginning; who reads it knows lines it has seen before.
 */
export async function readOn(
  path: string,
  from: FilePosition | null,
  upTo = Number.POSITIVE_INFINITY,
): Promise<LinesRead | null> {
  const file = await open(path, 'r').catch(() => null);
  if (file === null) return null;
  try {
    const { ino, size } = await file.stat();
    const restarted = from !== null && (from.ino !== ino || size < from.offset);
    const offset = from === null || restarted ? 0 : from.offset;
    const end = Math.min(size, upTo);
    const { bytes, skipped } = await wholeLines(file, offset, end);
    const lines: FileLine[] = [];
    for (let at = 0; at < bytes.length; ) {
      const newline = bytes.indexOf(NEWLINE, at);
      lines.push({ text: bytes.toString('utf8', at, newline), offset: offset + skipped + at });
      at = newline + 1;
    }
    const read = offset + skipped + bytes.length;
    return { lines, place: { ino, offset: read }, restarted, more: bytes.length > 0 && read < end };
  } finally {
    await file.close();
  }
}

/** What lies between two places up to the last newline, a few megabytes at a time. */
async function wholeLines(file: FileHandle, from: number, to: number): Promise<{ bytes: Buffer; skipped: number }> {
  for (let length = STEP_BYTES; ; length *= 4) {
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(length, to - from)));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
    const newline = buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE);
    if (newline >= 0) return { bytes: buffer.subarray(0, newline + 1), skipped: 0 };
    if (from + bytesRead >= to || bytesRead === 0) return { bytes: Buffer.alloc(0), skipped: 0 };
    if (length >= MAX_LINE_BYTES) return { bytes: Buffer.alloc(0), skipped: bytesRead };
  }
}

/** A stretch of a physical line. */
interface LineSegment {
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
export function parseRecords(text: string): readonly LineSegment[] {
  if (text.trim() === '') return [];
  const whole = parseJson(text);
  if (isObject(whole)) return [{ fields: whole, source: text }];
  const found: LineSegment[] = [];
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
    if (close === null || !isRecord(fields) || isNestedValue(text, index, close)) continue;
    gapUpTo(index);
    found.push({ fields, source: text.slice(index, close) });
    end = close;
  }
  gapUpTo(text.length);
  return joinTornRecord(found);
}

/** Puts the record together whose parts stand around others. */
function joinTornRecord(found: readonly LineSegment[]): readonly LineSegment[] {
  const gaps = found.filter(({ fields }) => fields === null);
  if (gaps.length < 2) return found;
  const source = gaps.map((gap) => gap.source).join('');
  const fields = parseJson(source);
  if (!isRecord(fields)) return found;
  const whole = { fields, source };
  return found.flatMap((stretch) => (stretch === gaps[0] ? whole : stretch.fields === null ? [] : stretch));
}

/** True for a value of a torn object, such as the input of a tool call, which may look like a record. */
function isNestedValue(text: string, from: number, to: number): boolean {
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
