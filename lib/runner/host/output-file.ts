import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { MAX_TASK_OUTPUT_BYTES } from '@/lib/protocol/limits';
import { redactOutput } from '@/lib/runner/logger/redact-output';
import type { Redactor } from '@/lib/runner/logger/redactor';

/** Up to where a task's output file was told. */
export interface OutputPlace {
  /** Which file: another may come to stand under its name. 0 before it was seen. */
  ino: number;
  /** All of it from `wholeFrom` to `to` was told. */
  wholeFrom: number;
  to: number;
}

export const OUTPUT_BEGIN: OutputPlace = { ino: 0, wholeFrom: 0, to: 0 };

/** What the file holds between two of its places, without secrets. */
export interface OutputPiece {
  from: number;
  to: number;
  text: string;
  redacted: number;
}

export interface OutputRead {
  pieces: OutputPiece[];
  place: OutputPlace;
}

/**
 * `live`: what is new, whole lines, at most `mostLive` bytes of it: the newest. `rest`: what is new and unfinished lines
 * too. `kept`: what is missing of the newest `MAX_TASK_OUTPUT_BYTES`; if anything before the place is, all of them.
 * `end`: that, and no more will be written.
 */
export type OutputReach = 'live' | 'rest' | 'kept' | 'end';

const isLive = (reach: OutputReach) => reach === 'live' || reach === 'rest';

/** Most bytes of one reading while the task runs, unless less is asked for. */
export const MOST_LIVE = 32 * 1024;
/** Of one piece: as JSON a byte may take six. */
const MOST_PIECE = 128 * 1024;
/** How far behind a piece a secret may begin. The longest are private keys. */
const LOOK_BEHIND = 16 * 1024;
/** How far a beginning in mid-line is put off to the next line. */
const LONG_LINE = 4 * 1024;
const NEWLINE = 10;
const RETURN = 13;
// Never through a link to a file that the agent may not mean, and never waiting for somebody to write to a pipe.
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Reads on in a file that a task writes to.
 *
 * Ordering: pieces come in the file's order. One that does not begin where the last one ended leaves a hole, or starts
 * over: a file that shrank or was replaced begins at 0 again.
 * Failure: throws what opening and reading throw; the place stays. Whatever the bytes are, they become text.
 *
 * @throws NotAFileError where there is something else under the name
 */
export async function readOutput(
  path: string,
  place: OutputPlace,
  reach: OutputReach,
  redactor: Redactor,
  mostLive = MOST_LIVE,
): Promise<OutputRead> {
  const file = await open(path, FLAGS);
  const most = isLive(reach) ? mostLive : MOST_PIECE;
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new NotAFileError(path);
    const isOther = (place.ino !== 0 && place.ino !== stat.ino) || stat.size < place.to;
    const known = isOther ? { ...OUTPUT_BEGIN, ino: stat.ino } : { ...place, ino: stat.ino };
    const from = await beginOf(file, known, { reach, most }, stat.size);
    const wholeFrom = from === known.to ? known.wholeFrom : from;
    const pieces: OutputPiece[] = [];
    let at = from;
    while (at < stat.size) {
      const piece = await readPiece(file, at, stat.size, { reach, most }, redactor);
      if (piece === null) break;
      pieces.push(piece);
      at = piece.to;
    }
    return { pieces, place: pieces.length === 0 ? known : { ino: stat.ino, wholeFrom, to: at } };
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

async function beginOf(
  file: FileHandle,
  place: OutputPlace,
  { reach, most }: { reach: OutputReach; most: number },
  size: number,
): Promise<number> {
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
  while (at < 4 && isInside(bytes[at])) at += 1;
  return Math.min(size, from - 1 + at);
}

async function readPiece(
  file: FileHandle,
  from: number,
  size: number,
  { reach, most }: { reach: OutputReach; most: number },
  redactor: Redactor,
): Promise<OutputPiece | null> {
  const behind = Math.max(0, from - LOOK_BEHIND);
  const bytes = await readBytes(file, behind, Math.min(size, from + most));
  const skipped = Math.min(from - behind, bytes.length);
  const fresh = bytes.subarray(skipped);
  const isAll = from + fresh.length >= size;
  const length = reach === 'live' || !isAll ? endOfLines(fresh, reach === 'live' && isAll) : wholeCharacters(fresh);
  // at its very end, half a character stays what it is
  const taken = length > 0 || reach !== 'end' ? length : fresh.length;
  if (taken === 0) return null;
  const before = bytes.toString('utf8', 0, skipped);
  const { text, redacted } = redactOutput(redactor, before, fresh.toString('utf8', 0, taken));
  return { from, to: from + taken, text, redacted };
}

/** How much of it is lines that have ended; of a line that is very long, and where it need not have, all there is. */
function endOfLines(bytes: Buffer, mayWait: boolean): number {
  const end = Math.max(bytes.lastIndexOf(NEWLINE), bytes.lastIndexOf(RETURN)) + 1;
  if (end > 0 || (mayWait && bytes.length < LONG_LINE)) return end;
  return wholeCharacters(bytes);
}

/** Without the beginning of a character at its end. */
function wholeCharacters(bytes: Buffer): number {
  let start = bytes.length - 1;
  while (start >= 0 && start > bytes.length - 4 && isInside(bytes[start])) start -= 1;
  const first = bytes[start];
  if (first === undefined || first < 0xc0) return bytes.length;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  return start + length > bytes.length ? start : bytes.length;
}

/** Whether a byte goes on with a character of UTF-8 that began before. */
function isInside(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

async function readBytes(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.max(0, to - from));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
  return buffer.subarray(0, bytesRead);
}
