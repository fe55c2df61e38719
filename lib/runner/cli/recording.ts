import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isObject, numberOf, parseJson } from '@interlude/protocol/fields';
import type { RecordedKind, RecordedLine } from '../adapters/recorded-kind';
import { RECORDED_KINDS } from '../adapters/recorded-kinds';
import type { ToldEvent } from '../adapters/wire';
import type { Redactor } from '../logger/redactor';
import { CliError, EXIT } from './command';

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

/**
 * Feeds a recording through the adapter, at the speed at which it was recorded or another.
 *
 * Ordering: line by line; what a line gives is handed over together with the place behind it.
 * Failure: a player that was killed is followed by one that reads the lines before the cursor again, to bring the
 * adapter where it stood, and hands over only what comes after. For that, run ids must come out the same: they are
 * derived from the session and the recording.
 */
interface Playback {
  recording: Recording;
  sessionId: string;
  /** The line to go on with; those before have been handed over. */
  fromLine: number;
  /** 1 is as recorded, Infinity without any wait. */
  speed: number;
  /** What lies before this time (ms into the recording) is handed over at once, with the times it would have had. */
  skipToMs?: number;
  signal: AbortSignal;
  /**
   * @param line everything before it has been handed over with this
   * @returns once it is stored
   */
  emit: (events: readonly ToldEvent[], line: number) => Promise<void>;
  /** What an earlier player has handed over. */
  onSkipped?: (events: readonly ToldEvent[]) => void;
  onLine?: (line: number) => void;
}

/** @returns whether it came to the end, rather than to the signal */
export async function play(playback: Playback): Promise<boolean> {
  const { recording, sessionId, fromLine, speed, signal, emit, onSkipped, onLine } = playback;
  const { kind, lines, hash } = recording;
  const reader = recordedKind(kind).newReader({
    sessionOf: sessionsOf(sessionId),
    newRunId: runIds(sessionId, hash),
  });
  const skippedMs = Math.max(playback.skipToMs ?? 0, lines[fromLine]?.at ?? 0);
  const startedAt = Date.now() - skippedMs / speed;
  const timeOf = (dueAt: number) =>
    speed === Number.POSITIVE_INFINITY ? Date.now() : Math.round(Math.min(dueAt, Date.now()));
  // The reader's own clock runs as the recording's: what silence says comes where it came then.
  const since = (at: number) => startedAt + at;
  for (const [at, line] of lines.entries()) {
    const outputs: ToldEvent[] = [];
    for (;;) {
      const { dueAt } = reader;
      if (dueAt === null || dueAt > since(line.at)) break;
      outputs.push(...reader.elapsed(dueAt));
    }
    const dueAt = startedAt + line.at / speed;
    if (at >= fromLine) await until(dueAt, signal);
    if (signal.aborted) return false;
    outputs.push(...reader.read(line, since(line.at)));
    // A recording that was cut off ends with its process, or the session would look alive for ever.
    const isLast = at === lines.length - 1;
    if (isLast) outputs.push(...reader.ended({ reason: 'the recording ends here' }, since(line.at)));
    const now = timeOf(dueAt);
    const told = outputs.map((one) => ({
      ...one,
      occurredAt: Math.min(now, timeOf(dueAt - (since(line.at) - one.occurredAt) / speed)),
    }));
    if (at < fromLine) {
      onSkipped?.(told);
      continue;
    }
    if (told.length > 0 || isLast) await emit(told, at + 1);
    onLine?.(at + 1);
  }
  return true;
}

/** The first session of a recording is the one that was asked for; the others are named after it. */
function sessionsOf(sessionId: string): (nativeId: string) => string {
  const known = new Map<string, string>();
  return (nativeId) => {
    const session = known.get(nativeId) ?? (known.size === 0 ? sessionId : `${sessionId}-${known.size + 1}`);
    known.set(nativeId, session);
    return session;
  };
}

function runIds(sessionId: string, hash: string): () => string {
  const prefix = createHash('sha256').update(`${sessionId}\n${hash}`).digest('hex').slice(0, 12);
  let count = 0;
  return () => `${prefix}-${++count}`;
}

/** Resolves at `time`, or as soon as the signal fires. */
export async function until(time: number, signal: AbortSignal): Promise<void> {
  const ms = time - Date.now();
  // -Infinity and NaN as well: without a speed limit nothing is ever in the future
  if (ms > 0) await pause(ms, undefined, { signal }).catch(() => undefined);
}

/**
 * What passes between a source and its agent, one JSON line a frame, for `interlude replay`: so that anybody can send in
 * what they saw. Secrets are taken out of every text and every name before it is written.
 *
 * Failure: a disk that takes no more ends the recording, which is said once; the runner goes on.
 */
const MAX_DEPTH = 200;

const WHY_NOT: Record<string, string> = {
  EEXIST: 'it exists already; name another one',
  ENOENT: 'there is no such folder; make it first',
  EACCES: 'its folder may not be written to; name another one',
};

export class Recorder {
  readonly #file: number;
  readonly #redactor: Redactor;
  readonly #startedAt = performance.now();
  #failed = false;

  /** @throws CliError if there is such a file already, or none can be made */
  static open(path: string, redactor: Redactor): Recorder {
    try {
      return new Recorder(openSync(path, 'wx', 0o600), redactor);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const why = WHY_NOT[code ?? ''] ?? code;
      throw new CliError(EXIT.failed, `no recording can be made in ${path}: ${why}`);
    }
  }

  private constructor(file: number, redactor: Redactor) {
    this.#file = file;
    this.#redactor = redactor;
  }

  /** @param fields of the line, besides its time: `dir` and `msg`, or what the recordings of its kind have */
  readonly write = (fields: object): void => {
    if (this.#failed) return;
    const at = Math.round(performance.now() - this.#startedAt);
    const line = { at, ...(this.#withoutSecrets({ ...fields }) as object) };
    try {
      writeSync(this.#file, `${JSON.stringify(line)}\n`);
    } catch (error) {
      this.#failed = true;
      process.stderr.write(`interlude: the recording ends here: ${(error as Error).message}\n`);
    }
  };

  close(): void {
    this.#failed = true;
    closeSync(this.#file);
  }

  /** Of `"api_key": "…"` the name says that the value is a secret, so both are looked at together. */
  #withoutSecrets(value: unknown, name = '', depth = 0): unknown {
    // Deeper, it is text: no frame may be the end of the recording, or of the runner.
    if (depth > MAX_DEPTH) return this.#clean(safeJson(value), name);
    if (typeof value === 'string') return this.#clean(value, name);
    if (Array.isArray(value)) return value.map((one) => this.#withoutSecrets(one, name, depth + 1));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [this.#clean(key), this.#withoutSecrets(one, key, depth + 1)]),
    );
  }

  #clean(text: string, name = ''): string {
    const before = name === '' ? '' : `${name}=`;
    const spans = this.#redactor.find(before + text);
    if (spans.length === 0) return text;
    const parts: string[] = [];
    let at = before.length;
    for (const { start, end, kind } of spans) {
      if (end <= before.length) continue;
      parts.push((before + text).slice(at, Math.max(at, start)), `[redacted: ${kind}]`);
      at = end;
    }
    return parts.join('') + (before + text).slice(at);
  }
}

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '[nested too deep to be written down]';
  }
}
