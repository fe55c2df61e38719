import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Fields, fieldsOf, isObject, parseJson, textOf } from '@interlude/protocol/fields';
import { setBounded } from '../../adapters/wire';

/** Positions in the files of a session. */
export interface FilesRead {
  file: string;
  main: FilePosition | null;
  subagents: Record<string, FilePosition>;
  /** Key of the last line read: of the session, and by subagent. */
  last: string | null;
  lastOf: Record<string, string>;
}

export interface TranscriptFilesOptions {
  read: FilesRead;
  /** Subagents whose files are worth reading. */
  subagents: () => readonly string[];
  /** Called once with each new line. */
  onLines: (lines: readonly TranscriptLine[]) => void;
  log: (level: 'info' | 'warn', message: string) => void;
  mostKeys?: number;
}

const MOST_KEYS = 20_000;

export interface TranscriptLine {
  fields: Record<string, unknown>;
  /** Identifies the line within the session. */
  key: string;
}

/**
 * Reads the transcript of a session and of its subagents.
 *
 * Ordering: lines are in file order; subagents are read after the session.
 * Failure: a truncated, replaced or rewritten transcript is read from its beginning. Known lines are skipped, and so is
 * everything before the first of them.
 */
export class TranscriptFiles {
  readonly #options: TranscriptFilesOptions;
  readonly #read: FilesRead;
  /** Keys of recent lines. All lines have ids except bookkeeping, which is never emitted. */
  readonly #knownKeys = new Map<string, true>();
  /** Key of the last record by subagent; null for the session. */
  readonly #previous = new Map<string | null, string>();

  constructor(options: TranscriptFilesOptions) {
    this.#options = options;
    this.#read = options.read;
  }

  get #mostKeys(): number {
    return this.#options.mostKeys ?? MOST_KEYS;
  }

  has(key: string): boolean {
    return this.#knownKeys.has(key);
  }

  /** Reads all new lines. */
  async readNewLines(): Promise<void> {
    while (await this.#readSome()) {}
  }

  /** Passes known lines to `onLines` again, to restore the state of their reader. */
  async reread(was: FilesRead): Promise<void> {
    this.#read.main = await this.#reread(was.file, null, was.main, was.last);
    for (const [id, position] of Object.entries(was.subagents)) {
      const again = await this.#reread(this.#file(id), id, position, was.lastOf[id] ?? was.last);
      if (again !== null) this.#read.subagents[id] = again;
    }
  }

  /** @returns true if there is more to read */
  async #readSome(): Promise<boolean> {
    const { log } = this.#options;
    const read = await this.#newLines(this.#read.file, this.#read.main);
    if (read !== null) {
      if (read.restarted) log('info', `the transcript ${this.#read.file} was restarted`);
      this.#read.main = read.position;
      this.#emitLines(null, read.lines);
    }
    let more = read?.more === true;
    for (const id of this.#options.subagents()) {
      const next = await this.#newLines(this.#file(id), this.#read.subagents[id] ?? null);
      if (next === null || next.position.offset === this.#read.subagents[id]?.offset) continue;
      this.#read.subagents[id] = next.position;
      this.#emitLines(id, next.lines);
      more ||= next.more;
    }
    return more;
  }

  /** New lines of a file. In a restarted file, forgotten lines before the first known one are skipped. */
  async #newLines(file: string, position: FilePosition | null): Promise<LinesRead | null> {
    const read = await readLines(file, position);
    if (!read?.restarted || this.#knownKeys.size < this.#mostKeys) return read;
    // Real ids only: bookkeeping may repeat the same text.
    const { found, end } = await scan(file, ({ fields }) => this.#knownKeys.has(textOf(fields?.uuid) ?? ''));
    // A truncated file without any known line has nothing new.
    const behind = found ?? (read.position.ino === position?.ino ? end : null);
    if (behind === null) return read;
    return { ...read, lines: [], position: { ino: read.position.ino, offset: behind }, more: true };
  }

  #emitLines(subagent: string | null, lines: readonly { text: string }[]): void {
    if (lines.length === 0) return;
    this.#options.onLines(lines.flatMap(({ text }) => this.#linesOf(subagent, text)));
  }

  /** New records of a physical line, with a placeholder for unreadable text. */
  #linesOf(subagent: string | null, text: string): TranscriptLine[] {
    return parseRecords(text).flatMap(({ fields, source }) => {
      if (fields !== null) {
        const key = lineKey(fields, source);
        this.#previous.set(subagent, key);
        const line = this.#newLine(fields, key);
        if (line !== null && subagent === null) this.#read.last = key;
        else if (line !== null) this.#read.lastOf[subagent as string] = key;
        return line ?? [];
      }
      // The key includes the previous line, because unreadable texts may be equal.
      const key = lineKey(null, `${this.#previous.get(subagent)}\n${source}`);
      this.#previous.set(subagent, key);
      const reason = `${source.length.toLocaleString('en')} characters of the transcript are unreadable.`;
      const gap = this.#newLine({ type: 'unreadable', reason }, key);
      if (gap !== null)
        this.#options.log('warn', `${source.length} characters of ${this.#file(subagent)} are unreadable`);
      return gap ?? [];
    });
  }

  /** @returns null for a known line */
  #newLine(fields: Record<string, unknown>, key: string): TranscriptLine | null {
    if (this.#knownKeys.has(key)) return null;
    setBounded(this.#knownKeys, key, true, this.#mostKeys);
    // Text typed during a turn has the id of its queue entry.
    const { source_uuid } = fieldsOf(fields.attachment);
    if (typeof source_uuid === 'string') setBounded(this.#knownKeys, source_uuid, true, this.#mostKeys);
    return { fields, key };
  }

  /** Passes the known lines of one file to `onLines`. @returns the position after them */
  async #reread(
    file: string,
    subagent: string | null,
    position: FilePosition | null,
    last: string | null,
  ): Promise<FilePosition | null> {
    if (position === null) return null;
    let read = await readLines(file, null, position.offset);
    if (read === null) return position;
    const isSame = read.position.ino === position.ino;
    // In a replaced file, everything up to the last emitted line is known. Without that line, nothing is.
    const isLast = ({ fields, source }: LineSegment) => fields !== null && lineKey(fields, source) === last;
    if (!isSame && (last === null || (await scan(file, isLast)).found === null)) return null;
    for (;;) {
      for (const { text, offset } of read.lines) {
        this.#emitLines(subagent, [{ text }]);
        const behind = offset + Buffer.byteLength(text) + 1;
        if (!isSame && this.#lastIn(subagent) === last) return { ino: read.position.ino, offset: behind };
      }
      if (!read.more) return isSame ? position : read.position;
      const next = await readLines(file, read.position, isSame ? position.offset : undefined);
      if (next === null || next.restarted) return read.position;
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

/** @returns the start of the first match; otherwise the end of the last complete line */
async function scan(
  file: string,
  matches: (segment: LineSegment) => boolean,
): Promise<{ found: number | null; end: number }> {
  let read = await readLines(file, null);
  while (read !== null) {
    const found = read.lines.find(({ text }) => parseRecords(text).some(matches));
    const end = read.position.offset;
    if (found !== undefined) return { found: found.offset, end };
    if (!read.more) return { found: null, end };
    read = await readLines(file, read.position);
  }
  return { found: null, end: 0 };
}

/** Key of a line: its id, or for bookkeeping a hash of its text. */
function lineKey(line: unknown, text: string): string {
  return textOf(fieldsOf(line).uuid) ?? createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** A read position in a file. */
export interface FilePosition {
  /** Inode, since the file may be replaced. */
  ino: number;
  offset: number;
}

interface FileLine {
  text: string;
  offset: number;
}

interface LinesRead {
  lines: FileLine[];
  position: FilePosition;
  /** True if the file was replaced or truncated, and was read from its beginning. */
  restarted: boolean;
  /** True if more lines are available. */
  more: boolean;
}

const STEP_BYTES = 4 * 1024 * 1024;
/** Longer lines can't belong to a transcript and are skipped. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
const NEWLINE = 10;

/**
 * Reads the complete new lines of a growing file.
 *
 * Ordering: in file order. A line is read once its newline is written.
 * Failure: a missing file has no lines. A file that shrank or was replaced is read from its beginning; callers skip
 * known lines.
 */
export async function readLines(
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
    const { bytes, skipped } = await completeLines(file, offset, end);
    const lines: FileLine[] = [];
    for (let index = 0; index < bytes.length; ) {
      const newline = bytes.indexOf(NEWLINE, index);
      lines.push({ text: bytes.toString('utf8', index, newline), offset: offset + skipped + index });
      index = newline + 1;
    }
    const read = offset + skipped + bytes.length;
    return { lines, position: { ino, offset: read }, restarted, more: bytes.length > 0 && read < end };
  } finally {
    await file.close();
  }
}

/** Bytes up to the last newline in the range, a few megabytes at a time. */
async function completeLines(file: FileHandle, from: number, to: number): Promise<{ bytes: Buffer; skipped: number }> {
  for (let length = STEP_BYTES; ; length *= 4) {
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(length, to - from)));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
    const newline = buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE);
    if (newline >= 0) return { bytes: buffer.subarray(0, newline + 1), skipped: 0 };
    if (from + bytesRead >= to || bytesRead === 0) return { bytes: Buffer.alloc(0), skipped: 0 };
    if (length >= MAX_LINE_BYTES) return { bytes: Buffer.alloc(0), skipped: bytesRead };
  }
}

/** A part of a physical line. */
interface LineSegment {
  /** The record; null for unreadable text. */
  fields: Fields | null;
  source: string;
}

/** The start of a record within a line: an object with one of the usual first fields. */
const RECORD_START =
  /\{"(?:type|uuid|parentUuid|logicalParentUuid|timestamp|sessionId|isSidechain|agentId|message|attachment|operation)":/g;
/** Every record has one of these fields; fragments of a torn record have none. */
const ID_FIELDS = ['uuid', 'sessionId', 'messageId', 'leafUuid'] as const;
/** Characters to scan, as a multiple of the line length, which bounds hostile lines. */
const MOST_PASSES = 4;

/**
 * Parses the records of a physical line. A crash can leave zeros before a record, a missing newline joins two, and
 * concurrent writers splice records.
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
  for (const { index } of text.matchAll(RECORD_START)) {
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

/** Joins a record that was split around others. */
function joinTornRecord(found: readonly LineSegment[]): readonly LineSegment[] {
  const gaps = found.filter(({ fields }) => fields === null);
  if (gaps.length < 2) return found;
  const source = gaps.map((gap) => gap.source).join('');
  const fields = parseJson(source);
  if (!isRecord(fields)) return found;
  const whole = { fields, source };
  return found.flatMap((segment) => (segment === gaps[0] ? whole : segment.fields === null ? [] : segment));
}

/** True for a nested value of a torn object that looks like a record, such as the input of a tool call. */
function isNestedValue(text: string, from: number, to: number): boolean {
  const [before = '', after = ''] = [text[from - 1], text[to]];
  return (/[:,[]/.test(before) && /[,}\]]/.test(after)) || (before === ':' && after === '');
}

function isRecord(value: unknown): value is Fields {
  return isObject(value) && ID_FIELDS.some((name) => textOf(value[name]) !== null);
}

/** @returns the offset after the closing brace of the object at `at`; null if it is not closed */
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
