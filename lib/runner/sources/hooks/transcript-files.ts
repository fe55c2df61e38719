import { basename, dirname, join } from 'node:path';
import { fieldsOf, textOf } from '@interlude/protocol/fields';
import { setBounded } from '../../adapters/bounded-map';
import { lineKey } from './line-key';
import type { MirrorState } from './mirror-state';
import { type LineStretch, recordsIn } from './records-in';
import { readOn, type TailPlace, type TailRead } from './tail-file';

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
  async readOn(): Promise<void> {
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
  async #gained(file: string, place: TailPlace | null): Promise<TailRead | null> {
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
    return recordsIn(text).flatMap(({ fields, source }) => {
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
    setBounded(this.#seen, key, true, this.#mostKeys);
    // The id of what was typed while a turn ran is that of its place in the queue.
    const { source_uuid } = fieldsOf(fields.attachment);
    if (typeof source_uuid === 'string') setBounded(this.#seen, source_uuid, true, this.#mostKeys);
    return { fields, key };
  }

  /** @returns up to where the file has been told */
  async #reread(
    file: string,
    subagent: string | null,
    place: TailPlace | null,
    last: string | null,
  ): Promise<TailPlace | null> {
    if (place === null) return null;
    let read = await readOn(file, null, place.offset);
    if (read === null) return place;
    const isSame = read.place.ino === place.ino;
    // Another file stands there: what was told ends at the line that was told last, if it is in it.
    const isLast = ({ fields, source }: LineStretch) => fields !== null && lineKey(fields, source) === last;
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
  isIt: (stretch: LineStretch) => boolean,
): Promise<{ found: number | null; end: number }> {
  let read = await readOn(file, null);
  while (read !== null) {
    const found = read.lines.find(({ text }) => recordsIn(text).some(isIt));
    const end = read.place.offset;
    if (found !== undefined) return { found: found.offset, end };
    if (!read.more) return { found: null, end };
    read = await readOn(file, read.place);
  }
  return { found: null, end: 0 };
}
