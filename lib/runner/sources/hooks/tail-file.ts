import { type FileHandle, open } from 'node:fs/promises';

/** How far a file has been read: which file, and up to where. */
export interface TailPlace {
  /** Inode: another file may come to stand under the same name. */
  ino: number;
  offset: number;
}

export interface TailLine {
  text: string;
  /** Where the line begins. */
  offset: number;
}

export interface TailRead {
  lines: TailLine[];
  place: TailPlace;
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
  from: TailPlace | null,
  upTo = Number.POSITIVE_INFINITY,
): Promise<TailRead | null> {
  const file = await open(path, 'r').catch(() => null);
  if (file === null) return null;
  try {
    const { ino, size } = await file.stat();
    const restarted = from !== null && (from.ino !== ino || size < from.offset);
    const offset = from === null || restarted ? 0 : from.offset;
    const end = Math.min(size, upTo);
    const { bytes, skipped } = await wholeLines(file, offset, end);
    const lines: TailLine[] = [];
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
