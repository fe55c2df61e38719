import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parseRecordingLine, type RecordingLine } from '@/lib/adapters/claude/recording';

/** A recording of a Claude Code run. */
export interface Recording {
  /** The file's name without `.jsonl`. */
  name: string;
  lines: RecordingLine[];
  /** SHA-256 of the content: the same recording under another name is the same. */
  hash: string;
}

/** @throws Error with one line that names the file and, where it has one, the line */
export async function readRecording(file: string): Promise<Recording> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(error.code === 'ENOENT' ? `${file}: no such file` : `${file} can't be read (${error.code})`);
  });
  const lines = text.split('\n').flatMap((line, at) => {
    if (line.trim() === '') return [];
    const parsed = parseRecordingLine(line);
    if (parsed) return [parsed];
    throw new Error(`${file}: not a recording: line ${at + 1} is not {"t", "src", "msg"}`);
  });
  if (!lines.some((line) => line.src === 'sdk')) {
    throw new Error(`${file}: not a recording of Claude Code: it has no line with "src":"sdk"`);
  }
  const hash = createHash('sha256').update(text).digest('hex');
  return { name: basename(file).replace(/\.jsonl$/, ''), lines, hash };
}
