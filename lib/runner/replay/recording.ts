import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { isObject, numberOf, parseJson } from '@interlude/protocol/fields';
import type { RecordedKind, RecordedLine } from '../adapters/recordings';
import { RECORDED_KINDS } from '../adapters/recordings';

/** A recording of an agent's run, one JSON object a line. */
export interface Recording {
  /** The file's name without `.jsonl`. */
  name: string;
  /** Which kind of agent: `claude`. */
  kind: string;
  lines: RecordedLine[];
  /** SHA-256 of the content: the same recording under another name is the same. */
  hash: string;
}

/** Most lines that are looked at to tell the kind: each has something of its own at its beginning. */
const LOOKED_AT = 200;

/**
 * @param kind which kind it is; by default that is told from its lines
 * @throws Error with one line that names the file and, where it has one, the line
 */
export async function readRecording(file: string, kind?: string): Promise<Recording> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(error.code === 'ENOENT' ? `${file}: no such file` : `${file} can't be read (${error.code})`);
  });
  const lines = text.split('\n').flatMap((line, at) => {
    if (line.trim() === '') return [];
    const parsed = parseLine(line);
    if (parsed) return [parsed];
    throw new Error(
      `${file}: not a recording: line ${at + 1} is neither {"dir", "at", "msg"} nor Claude Code's {"t", "src", "msg"}`,
    );
  });
  const hash = createHash('sha256').update(text).digest('hex');
  const name = basename(file).replace(/\.jsonl$/, '');
  return { name, kind: kind ?? kindOf(lines, file), lines, hash };
}

export function recordedKind(name: string): RecordedKind {
  const kind = Object.hasOwn(RECORDED_KINDS, name) ? RECORDED_KINDS[name] : undefined;
  if (kind === undefined) throw new Error(`there are no recordings of the kind "${name}"`);
  return kind;
}

function kindOf(lines: readonly RecordedLine[], file: string): string {
  for (const line of lines.slice(0, LOOKED_AT)) {
    const [found] = Object.entries(RECORDED_KINDS).find(([, { recognises }]) => recognises(line)) ?? [];
    if (found !== undefined) return found;
  }
  const kinds = Object.keys(RECORDED_KINDS).join(', ');
  throw new Error(`${file}: nothing in it tells which kind of agent was recorded; name it with --kind (${kinds})`);
}

/** `t` is what the recordings of the Agent SDK call their time. */
function parseLine(text: string): RecordedLine | null {
  const fields = parseJson(text);
  if (!isObject(fields) || !('msg' in fields || 'src' in fields)) return null;
  const at = numberOf(fields.at) ?? numberOf(fields.t);
  return at === null ? null : { at, fields };
}
