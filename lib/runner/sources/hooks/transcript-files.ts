import { basename, dirname, join } from 'node:path';
import { fieldsOf } from '@/lib/adapters/claude/fields';
import { lineKey } from './line-key';
import type { MirrorState } from './mirror-state';
import { readOn, type TailPlace } from './tail-file';

/** How far a session's files have been told: the part of a mirror's state that is theirs. */
export type FilesRead = Pick<MirrorState, 'file' | 'main' | 'subagents' | 'last'>;

export interface TranscriptFilesOptions {
  read: FilesRead;
  /** Subagents whose own files are worth reading, by what was read before. */
  subagents: () => readonly string[];
  /** Lines that were gained, each once. */
  onLines: (lines: readonly TranscriptLine[]) => void;
  log: (level: 'info' | 'warn', message: string) => void;
}

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
 * before are left out.
 */
export class TranscriptFiles {
  readonly #options: TranscriptFilesOptions;
  readonly #read: FilesRead;
  /** Keys of lines that were read; a transcript names each line, and bookkeeping that has no name is never told. */
  readonly #seen = new Set<string>();

  constructor(options: TranscriptFilesOptions) {
    this.#options = options;
    this.#read = options.read;
  }

  has(key: string): boolean {
    return this.#seen.has(key);
  }

  /** All there is to read by now. */
  async readOn(): Promise<void> {
    while (await this.#readSome()) {
      // more waits
    }
  }

  /** Reads again what was told before; `onLines` is called for it too. */
  async reread(was: FilesRead): Promise<void> {
    this.#read.main = await this.#reread(was.file, was.main, was.last);
    for (const [id, place] of Object.entries(was.subagents)) {
      const again = await this.#reread(this.#subagentFile(id), place, was.last);
      if (again !== null) this.#read.subagents[id] = again;
    }
  }

  /** @returns whether there is more */
  async #readSome(): Promise<boolean> {
    const { log } = this.#options;
    const read = await readOn(this.#read.file, this.#read.main);
    if (read !== null) {
      if (read.restarted) log('info', `the transcript ${this.#read.file} begins anew`);
      this.#read.main = read.place;
      this.#take(read.lines);
    }
    let more = read?.more === true;
    for (const id of this.#options.subagents()) {
      const its = await readOn(this.#subagentFile(id), this.#read.subagents[id] ?? null);
      if (its === null || its.place.offset === this.#read.subagents[id]?.offset) continue;
      this.#read.subagents[id] = its.place;
      this.#take(its.lines);
      more ||= its.more;
    }
    return more;
  }

  #take(lines: readonly { text: string }[]): void {
    if (lines.length === 0) return;
    this.#options.onLines(lines.flatMap(({ text }) => this.#lineOf(text) ?? []));
  }

  /** @returns null for what is no line, or was here before */
  #lineOf(text: string): TranscriptLine | null {
    if (text.trim() === '') return null;
    let fields: Record<string, unknown>;
    try {
      fields = fieldsOf(JSON.parse(text));
    } catch {
      this.#options.log('warn', `a line of ${this.#read.file} is not JSON and is left out`);
      return null;
    }
    const key = lineKey(fields, text);
    if (this.#seen.has(key)) return null;
    this.#seen.add(key);
    // The id of what was typed while a turn ran is that of its place in the queue.
    const { source_uuid } = fieldsOf(fields.attachment);
    if (typeof source_uuid === 'string') this.#seen.add(source_uuid);
    this.#read.last = key;
    return { fields, key };
  }

  /** @returns up to where the file has been told */
  async #reread(file: string, place: TailPlace | null, last: string | null): Promise<TailPlace | null> {
    if (place === null) return null;
    let read = await readOn(file, null, place.offset);
    if (read === null) return place;
    const isSame = read.place.ino === place.ino;
    // Another file stands there: what was told ends at the line that was told last, if it is in it.
    if (!isSame && !(await holds(file, last))) return null;
    for (;;) {
      for (const { text, offset } of read.lines) {
        this.#take([{ text }]);
        const behind = offset + Buffer.byteLength(text) + 1;
        if (!isSame && this.#read.last === last) return { ino: read.place.ino, offset: behind };
      }
      if (!read.more) return isSame ? place : read.place;
      const next = await readOn(file, read.place, isSame ? place.offset : undefined);
      if (next === null || next.restarted) return read.place;
      read = next;
    }
  }

  #subagentFile(id: string): string {
    const { file } = this.#read;
    return join(dirname(file), basename(file, '.jsonl'), 'subagents', `agent-${id.replace(/[^\w-]/g, '_')}.jsonl`);
  }
}

async function holds(file: string, last: string | null): Promise<boolean> {
  if (last === null) return false;
  for (let read = await readOn(file, null); read !== null; read = await readOn(file, read.place)) {
    if (read.lines.some(({ text }) => keyOf(text) === last)) return true;
    if (!read.more) return false;
  }
  return false;
}

function keyOf(text: string): string {
  try {
    return lineKey(JSON.parse(text), text);
  } catch {
    return '';
  }
}
