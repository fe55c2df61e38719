import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { MAX_TASK_OUTPUT_BYTES } from '@interlude/protocol/limits';
import { redactOutput, visibleText } from '@interlude/protocol/redaction/redacted-text';
import type { Redactor } from '../logger/redactor';

/** Position up to which an output file was emitted. */
export interface OutputPosition {
  /** Inode of the file, which may be replaced; 0 before the first read. */
  ino: number;
  /** Everything from `wholeFrom` to `to` was emitted. */
  wholeFrom: number;
  to: number;
  /** Digest of the bytes before `to`, to detect a rewritten file. */
  mark: string;
}

export const OUTPUT_START: OutputPosition = { ino: 0, wholeFrom: 0, to: 0, mark: '' };

/** File content between two offsets, redacted. */
export interface OutputPiece {
  from: number;
  to: number;
  text: string;
  redacted: number;
}

export interface OutputRead {
  pieces: OutputPiece[];
  position: OutputPosition;
  /** Modification time, epoch milliseconds. */
  writtenAt: number;
}

/**
 * `live`: new whole lines, the newest `mostLive` bytes. `rest`: also unfinished lines. `kept`: everything missing of
 * the newest `MAX_TASK_OUTPUT_BYTES`, or all of them if earlier parts are missing. `end`: the same for a file that is
 * complete.
 */
export type ReadMode = 'live' | 'rest' | 'kept' | 'end';

const isLive = (mode: ReadMode) => mode === 'live' || mode === 'rest';

/** Default limit of one read while the task runs. */
export const MOST_LIVE = 32 * 1024;
/** Limit of a piece; as JSON a byte may take six. */
const MOST_PIECE = 128 * 1024;
/** How far before and after a piece a secret may extend. The longest are private keys. */
const LOOK_BEHIND = 64 * 1024;
const LOOK_AHEAD = 8 * 1024;
/** How far a start within a line moves to the next line. */
const LONG_LINE = 4 * 1024;
const MARKED_BYTES = 256;
const NEWLINE = 10;
const RETURN = 13;
// Never follows a link, and never blocks on a pipe.
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

interface Reading {
  mode: ReadMode;
  most: number;
  size: number;
  redactor: Redactor;
}

/**
 * Reads new output of a task.
 *
 * Ordering: pieces are in file order. A piece that does not continue the previous one leaves a hole, or starts over
 * after the file shrank, was replaced or rewritten.
 * Failure: open and read errors are thrown, and the position stays. Invalid UTF-8 is decoded with replacement
 * characters.
 *
 * @throws NotAFileError if the path is not a regular file
 */
export async function readOutput(
  path: string,
  position: OutputPosition,
  mode: ReadMode,
  redactor: Redactor,
  mostLive = MOST_LIVE,
): Promise<OutputRead> {
  const file = await open(path, FLAGS);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new NotAFileError(path);
    const { ino, size, mtimeMs } = stat;
    const reading = { mode, most: isLive(mode) ? mostLive : MOST_PIECE, size, redactor };
    const known = (await isSame(file, position, ino, size)) ? { ...position, ino } : { ...OUTPUT_START, ino };
    const from = await startOf(file, known, reading);
    // Everything retained was emitted, even though the piece began at a line start.
    const wholeStart = isLive(mode) ? from : Math.min(from, Math.max(0, size - MAX_TASK_OUTPUT_BYTES));
    const wholeFrom = from === known.to ? known.wholeFrom : wholeStart;
    const pieces: OutputPiece[] = [];
    let at = from;
    while (at < size) {
      const piece = await readPiece(file, at, reading);
      if (piece === null) break;
      pieces.push(piece);
      at = piece.to;
    }
    const writtenAt = Math.round(mtimeMs);
    if (pieces.length === 0) return { pieces, position: known, writtenAt };
    return { pieces, position: { ino, wholeFrom, to: at, mark: await digestAt(file, at) }, writtenAt };
  } finally {
    await file.close();
  }
}

export class NotAFileError extends Error {
  override readonly name = 'NotAFileError';

  constructor(path: string) {
    super(`${path} is not a regular file`);
  }
}

async function isSame(file: FileHandle, position: OutputPosition, ino: number, size: number): Promise<boolean> {
  if ((position.ino !== 0 && position.ino !== ino) || size < position.to) return false;
  return position.to === 0 || (await digestAt(file, position.to)) === position.mark;
}

async function digestAt(file: FileHandle, at: number): Promise<string> {
  const bytes = await readBytes(file, Math.max(0, at - MARKED_BYTES), at);
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
}

async function startOf(file: FileHandle, position: OutputPosition, { mode, most, size }: Reading): Promise<number> {
  if (isLive(mode)) return size - position.to > most ? lineFrom(file, size - most, size) : position.to;
  const oldest = Math.max(0, size - MAX_TASK_OUTPUT_BYTES);
  if (position.wholeFrom <= oldest && position.to >= oldest) return position.to;
  return lineFrom(file, oldest, size);
}

/** Offset of the next line start; within a very long line, of the next character. */
async function lineFrom(file: FileHandle, from: number, size: number): Promise<number> {
  if (from === 0) return 0;
  const bytes = await readBytes(file, from - 1, Math.min(size, from + LONG_LINE));
  const newline = bytes.indexOf(NEWLINE);
  if (newline >= 0 && from + newline < size) return from + newline;
  let at = 1;
  while (at < 4 && isContinuationByte(bytes[at])) at += 1;
  return Math.min(size, from - 1 + at);
}

async function readPiece(file: FileHandle, from: number, reading: Reading): Promise<OutputPiece | null> {
  const { mode, most, size, redactor } = reading;
  const begin = Math.max(0, from - LOOK_BEHIND);
  const bytes = await readBytes(file, begin, Math.min(size, from + most + LOOK_AHEAD));
  const behind = bytes.subarray(0, Math.min(from - begin, bytes.length));
  const fresh = bytes.subarray(behind.length, behind.length + most);
  const ahead = bytes.subarray(behind.length + fresh.length);
  const isAll = from + fresh.length >= size;
  const taken = isAll ? endOfAll(fresh, mode) : endOfLines(fresh);
  if (taken === 0) return null;
  const { text, redacted } = redactOutput(redactor, {
    behind: behind.toString('utf8'),
    piece: fresh.toString('utf8', 0, taken),
    ahead: fresh.toString('utf8', taken) + ahead.toString('utf8'),
  });
  return { from, to: from + taken, text, redacted };
}

/** Length of the finished lines; of a very long line, of its complete characters. */
function endOfLines(bytes: Buffer): number {
  const end = lastLineEnd(bytes);
  return end > 0 ? end : completeCharacters(bytes);
}

/** End of the last finished line; 0 if there is none. */
function lastLineEnd(bytes: Buffer): number {
  return Math.max(bytes.lastIndexOf(NEWLINE), bytes.lastIndexOf(RETURN)) + 1;
}

/** Length that may be emitted when the read reached the end of the file. */
function endOfAll(bytes: Buffer, mode: ReadMode): number {
  // a truncated character at the end of a complete file stays as it is
  if (mode === 'end') return bytes.length;
  const lines = lastLineEnd(bytes);
  const isLong = bytes.length - lines >= LONG_LINE;
  if (mode === 'live' && !isLong) return lines;
  return Math.max(lines, beforePartialWord(bytes, completeCharacters(bytes)));
}

/** Shorter words, and words that end like a prompt, may be emitted unfinished. */
const MIN_PARTIAL_WORD = 6;
const PROMPT_END = /[:?>\])]$/;

/** Length without a trailing word that may be half a secret. */
function beforePartialWord(bytes: Buffer, length: number): number {
  const least = Math.max(0, length - LOOK_AHEAD);
  let from = length;
  while (from > least && !WHITESPACE.has(bytes[from - 1] as number)) from -= 1;
  const word = visibleText(bytes.toString('utf8', from, length));
  return word.length < MIN_PARTIAL_WORD || PROMPT_END.test(word) ? length : from;
}

const WHITESPACE: ReadonlySet<number> = new Set([NEWLINE, RETURN, 0x20, 0x09]);

/** Length without a truncated character at the end. */
function completeCharacters(bytes: Buffer): number {
  let start = bytes.length - 1;
  while (start >= 0 && start > bytes.length - 4 && isContinuationByte(bytes[start])) start -= 1;
  const first = bytes[start];
  if (first === undefined || first < 0xc0) return bytes.length;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  return start + length > bytes.length ? start : bytes.length;
}

function isContinuationByte(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

async function readBytes(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.max(0, to - from));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
  return buffer.subarray(0, bytesRead);
}
