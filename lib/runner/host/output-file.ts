import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { MAX_TASK_OUTPUT_BYTES } from '@interlude/protocol/limits';
import { redactOutput, seenText } from '@interlude/protocol/redaction/redact-output';
import type { Redactor } from '../logger/redactor';

/** Up to where a task's output file was told. */
export interface OutputPosition {
  /** Which file: another may come to stand under its name. 0 before it was seen. */
  ino: number;
  /** All of it from `wholeFrom` to `to` was told. */
  wholeFrom: number;
  to: number;
  /** Digest of what stands before `to`: a file that was written anew has something else there. */
  mark: string;
}

export const OUTPUT_START: OutputPosition = { ino: 0, wholeFrom: 0, to: 0, mark: '' };

/** What the file holds between two of its places, without secrets. */
export interface OutputPiece {
  from: number;
  to: number;
  text: string;
  redacted: number;
}

export interface OutputRead {
  pieces: OutputPiece[];
  place: OutputPosition;
  /** When the file was last written to, epoch milliseconds. */
  writtenAt: number;
}

/**
 * `live`: what is new, whole lines, at most `mostLive` bytes of it: the newest. `rest`: what is new and unfinished lines
 * too. `kept`: what is missing of the newest `MAX_TASK_OUTPUT_BYTES`; if anything before the place is, all of them.
 * `end`: that, and no more will be written.
 */
export type ReadMode = 'live' | 'rest' | 'kept' | 'end';

const isLive = (reach: ReadMode) => reach === 'live' || reach === 'rest';

/** Most bytes of one reading while the task runs, unless less is asked for. */
export const MOST_LIVE = 32 * 1024;
/** Of one piece: as JSON a byte may take six. */
const MOST_PIECE = 128 * 1024;
/** How far behind a piece a secret may begin, and how far ahead of it one may end. The longest are private keys. */
const LOOK_BEHIND = 64 * 1024;
const LOOK_AHEAD = 8 * 1024;
/** How far a beginning in mid-line is put off to the next line. */
const LONG_LINE = 4 * 1024;
const MARKED_BYTES = 256;
const NEWLINE = 10;
const RETURN = 13;
// Never through a link to a file that the agent may not mean, and never waiting for somebody to write to a pipe.
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** How a file is read on. */
interface Reading {
  reach: ReadMode;
  most: number;
  size: number;
  redactor: Redactor;
}

/**
 * Reads on in a file that a task writes to.
 *
 * Ordering: pieces come in the file's order. One that does not begin where the last one ended leaves a hole, or starts
 * over: a file that shrank, was replaced or was written anew begins at 0 again.
 * Failure: throws what opening and reading throw; the place stays. Whatever the bytes are, they become text.
 *
 * @throws NotAFileError where there is something else under the name
 */
export async function readOutput(
  path: string,
  place: OutputPosition,
  reach: ReadMode,
  redactor: Redactor,
  mostLive = MOST_LIVE,
): Promise<OutputRead> {
  const file = await open(path, FLAGS);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new NotAFileError(path);
    const { ino, size, mtimeMs } = stat;
    const reading = { reach, most: isLive(reach) ? mostLive : MOST_PIECE, size, redactor };
    const known = (await isSame(file, place, ino, size)) ? { ...place, ino } : { ...OUTPUT_START, ino };
    const from = await startOf(file, known, reading);
    // All that is kept was told, though it began at the next line.
    const begun = isLive(reach) ? from : Math.min(from, Math.max(0, size - MAX_TASK_OUTPUT_BYTES));
    const wholeFrom = from === known.to ? known.wholeFrom : begun;
    const pieces: OutputPiece[] = [];
    let at = from;
    while (at < size) {
      const piece = await readPiece(file, at, reading);
      if (piece === null) break;
      pieces.push(piece);
      at = piece.to;
    }
    const writtenAt = Math.round(mtimeMs);
    if (pieces.length === 0) return { pieces, place: known, writtenAt };
    return { pieces, place: { ino, wholeFrom, to: at, mark: await digestAt(file, at) }, writtenAt };
  } finally {
    await file.close();
  }
}

export class NotAFileError extends Error {
  override readonly name = 'NotAFileError';

  constructor(path: string) {
    super(`${path} is no regular file`);
  }
}

async function isSame(file: FileHandle, place: OutputPosition, ino: number, size: number): Promise<boolean> {
  if ((place.ino !== 0 && place.ino !== ino) || size < place.to) return false;
  return place.to === 0 || (await digestAt(file, place.to)) === place.mark;
}

async function digestAt(file: FileHandle, at: number): Promise<string> {
  const bytes = await readBytes(file, Math.max(0, at - MARKED_BYTES), at);
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
}

async function startOf(file: FileHandle, place: OutputPosition, { reach, most, size }: Reading): Promise<number> {
  if (isLive(reach)) return size - place.to > most ? lineFrom(file, size - most, size) : place.to;
  const oldest = Math.max(0, size - MAX_TASK_OUTPUT_BYTES);
  if (place.wholeFrom <= oldest && place.to >= oldest) return place.to;
  return lineFrom(file, oldest, size);
}

/** Where a line begins, at `from` or soon after; within a line that is very long, where a character does. */
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
  const { reach, most, size, redactor } = reading;
  const begin = Math.max(0, from - LOOK_BEHIND);
  const bytes = await readBytes(file, begin, Math.min(size, from + most + LOOK_AHEAD));
  const behind = bytes.subarray(0, Math.min(from - begin, bytes.length));
  const fresh = bytes.subarray(behind.length, behind.length + most);
  const ahead = bytes.subarray(behind.length + fresh.length);
  const isAll = from + fresh.length >= size;
  const taken = isAll ? endOfAll(fresh, reach) : endOfLines(fresh);
  if (taken === 0) return null;
  const { text, redacted } = redactOutput(redactor, {
    behind: behind.toString('utf8'),
    piece: fresh.toString('utf8', 0, taken),
    ahead: fresh.toString('utf8', taken) + ahead.toString('utf8'),
  });
  return { from, to: from + taken, text, redacted };
}

/** How much of it is lines that have ended; of a line that is very long, all that is whole. */
function endOfLines(bytes: Buffer): number {
  const end = lastLineEnd(bytes);
  return end > 0 ? end : completeCharacters(bytes);
}

/** Where the last line that has ended does; 0 if none has. */
function lastLineEnd(bytes: Buffer): number {
  return Math.max(bytes.lastIndexOf(NEWLINE), bytes.lastIndexOf(RETURN)) + 1;
}

/** How much may be told of all there is by now. */
function endOfAll(bytes: Buffer, reach: ReadMode): number {
  // at its very end, half a character stays what it is
  if (reach === 'end') return bytes.length;
  const lines = lastLineEnd(bytes);
  const isLong = bytes.length - lines >= LONG_LINE;
  if (reach === 'live' && !isLong) return lines;
  return Math.max(lines, beforePartialWord(bytes, completeCharacters(bytes)));
}

/** A word that is shorter, or ends like a question, may be shown before it is finished. */
const LEAST_BEGUN = 6;
const ASKS = /[:?>\])]$/;

/** How much of it does not end within a word that may be half a secret: that waits for its other half. */
function beforePartialWord(bytes: Buffer, length: number): number {
  const least = Math.max(0, length - LOOK_AHEAD);
  let from = length;
  while (from > least && !BLANKS.has(bytes[from - 1] as number)) from -= 1;
  const word = seenText(bytes.toString('utf8', from, length));
  return word.length < LEAST_BEGUN || ASKS.test(word) ? length : from;
}

const BLANKS: ReadonlySet<number> = new Set([NEWLINE, RETURN, 0x20, 0x09]);

/** Without the beginning of a character at its end. */
function completeCharacters(bytes: Buffer): number {
  let start = bytes.length - 1;
  while (start >= 0 && start > bytes.length - 4 && isContinuationByte(bytes[start])) start -= 1;
  const first = bytes[start];
  if (first === undefined || first < 0xc0) return bytes.length;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  return start + length > bytes.length ? start : bytes.length;
}

/** Whether a byte goes on with a character of UTF-8 that began before. */
function isContinuationByte(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

async function readBytes(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.max(0, to - from));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
  return buffer.subarray(0, bytesRead);
}
