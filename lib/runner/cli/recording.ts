import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isObject, numberOf, parseJson } from '@interlude/protocol/fields';
import type { RecordedKind, RecordedLine } from '../adapters/recordings';
import { RECORDED_KINDS } from '../adapters/recordings';
import type { EmittedEvent } from '../adapters/wire';
import type { Redactor } from '../logger/redactor';
import { CliError, EXIT } from './command';

/** A recording of an agent's run, one JSON object a line. */
export interface Recording {
  /** The file's name without `.jsonl`. */
  name: string;
  /** Kind of agent: `claude`. */
  kind: string;
  lines: RecordedLine[];
  /** SHA-256 of the content, so that a renamed recording stays the same. */
  hash: string;
}

/** Number of lines searched for the kind of agent. */
const MAX_DETECT_LINES = 200;

/**
 * @param kind default: detected from the lines
 * @throws Error with one line that names the file and the invalid line
 */
export async function readRecording(file: string, kind?: string): Promise<Recording> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(
      error.code === 'ENOENT' ? `${file}: no such file; check the path` : `${file} can't be read (${error.code})`,
    );
  });
  const lines = text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    const parsed = parseLine(line);
    if (parsed) return [parsed];
    throw new Error(
      `${file}: not a recording: line ${index + 1} is neither {"dir", "at", "msg"} nor Claude Code's {"t", "src", "msg"}`,
    );
  });
  const hash = createHash('sha256').update(text).digest('hex');
  const name = basename(file).replace(/\.jsonl$/, '');
  return { name, kind: kind ?? kindOf(lines, file), lines, hash };
}

function recordedKind(name: string): RecordedKind {
  const kind = Object.hasOwn(RECORDED_KINDS, name) ? RECORDED_KINDS[name] : undefined;
  if (kind === undefined) throw new Error(`recordings of "${name}" are not supported; use --kind (${kindNames()})`);
  return kind;
}

function kindOf(lines: readonly RecordedLine[], file: string): string {
  for (const line of lines.slice(0, MAX_DETECT_LINES)) {
    const [found] = Object.entries(RECORDED_KINDS).find(([, { recognizes }]) => recognizes(line)) ?? [];
    if (found !== undefined) return found;
  }
  throw new Error(`${file}: can't detect the kind of agent; name it with --kind (${kindNames()})`);
}

const kindNames = () => Object.keys(RECORDED_KINDS).join(', ');

/** Recordings of the Agent SDK call the time `t`. */
function parseLine(text: string): RecordedLine | null {
  const fields = parseJson(text);
  if (!isObject(fields) || !('msg' in fields || 'src' in fields)) return null;
  const at = numberOf(fields.at) ?? numberOf(fields.t);
  return at === null ? null : { at, fields };
}

interface Playback {
  recording: Recording;
  sessionId: string;
  /** The first line to emit. */
  fromLine: number;
  /** 1: as recorded; Infinity: without waits. */
  speed: number;
  /**
   * Milliseconds into the recording. Earlier events are emitted immediately, with the times at which they would have
   * occurred.
   */
  skipToMs?: number;
  signal: AbortSignal;
  /**
   * @param line the number of lines emitted so far
   * @returns once stored
   */
  emit: (events: readonly EmittedEvent[], line: number) => Promise<void>;
  /** Receives the events before `fromLine`. */
  onSkipped?: (events: readonly EmittedEvent[]) => void;
  onLine?: (line: number) => void;
}

/**
 * Plays a recording through its adapter.
 *
 * Ordering: line by line; the events of a line are emitted together with the position after it.
 * Failure: after a kill, the next player reads the lines before `fromLine` again to restore the adapter's state, and
 * emits only what follows. For that, run ids must not change, so they derive from the session and the recording.
 *
 * @returns false if the signal ended it
 */
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
  // The reader's clock runs at the recording's speed, so that its timeouts fire at the same places as in the recorded
  // run.
  const since = (at: number) => startedAt + at;
  for (const [index, line] of lines.entries()) {
    const outputs: EmittedEvent[] = [];
    for (;;) {
      const { dueAt } = reader;
      if (dueAt === null || dueAt > since(line.at)) break;
      outputs.push(...reader.elapsed(dueAt));
    }
    const dueAt = startedAt + line.at / speed;
    if (index >= fromLine) await sleepUntil(dueAt, signal);
    if (signal.aborted) return false;
    outputs.push(...reader.read(line, since(line.at)));
    // Ends the session of a truncated recording, which would otherwise look alive forever.
    const isLast = index === lines.length - 1;
    if (isLast) outputs.push(...reader.ended({ reason: 'the recording ends here' }, since(line.at)));
    const now = timeOf(dueAt);
    const events = outputs.map((one) => ({
      ...one,
      occurredAt: Math.min(now, timeOf(dueAt - (since(line.at) - one.occurredAt) / speed)),
    }));
    if (index < fromLine) {
      onSkipped?.(events);
      continue;
    }
    if (events.length > 0 || isLast) await emit(events, index + 1);
    onLine?.(index + 1);
  }
  return true;
}

/** The first session of a recording gets this id; the others are numbered after it. */
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

/** Resolves at `time` or when the signal aborts. */
export async function sleepUntil(time: number, signal: AbortSignal): Promise<void> {
  const ms = time - Date.now();
  // Infinite speeds give -Infinity or NaN.
  if (ms > 0) await pause(ms, undefined, { signal }).catch(() => undefined);
}

const MAX_DEPTH = 200;

const REASONS: Record<string, string> = {
  EEXIST: 'it already exists; name another file',
  ENOENT: 'its folder does not exist; create it first',
  EACCES: 'its folder is not writable; name another file',
};

/**
 * Writes the frames between a source and its agent for `interlude replay`, one JSON line each, with secrets redacted from
 * every text and name.
 *
 * Failure: a write error ends the recording with a warning; the runner continues.
 */
export class Recorder {
  readonly #file: number;
  readonly #redactor: Redactor;
  readonly #startedAt = performance.now();
  #failed = false;

  /** @throws CliError if the file exists or can't be created */
  static open(path: string, redactor: Redactor): Recorder {
    try {
      return new Recorder(openSync(path, 'wx', 0o600), redactor);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const reason = REASONS[code ?? ''] ?? code;
      throw new CliError(EXIT.failed, `can't record to ${path}: ${reason}`);
    }
  }

  private constructor(file: number, redactor: Redactor) {
    this.#file = file;
    this.#redactor = redactor;
  }

  /** @param fields of the line except its time: `dir` and `msg`, or fields specific to the kind */
  readonly write = (fields: object): void => {
    if (this.#failed) return;
    const at = Math.round(performance.now() - this.#startedAt);
    const line = { at, ...(this.#redactValue({ ...fields }) as object) };
    try {
      writeSync(this.#file, `${JSON.stringify(line)}\n`);
    } catch (error) {
      this.#failed = true;
      process.stderr.write(`interlude: recording stopped: ${(error as Error).message}\n`);
    }
  };

  close(): void {
    this.#failed = true;
    closeSync(this.#file);
  }

  /** Redacts a value together with its name: in `"api_key": "…"` only the name marks the value as a secret. */
  #redactValue(value: unknown, name = '', depth = 0): unknown {
    // Deeper values are written as text, so that no frame overflows the stack.
    if (depth > MAX_DEPTH) return this.#redactText(safeJson(value), name);
    if (typeof value === 'string') return this.#redactText(value, name);
    if (Array.isArray(value)) return value.map((one) => this.#redactValue(one, name, depth + 1));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [this.#redactText(key), this.#redactValue(one, key, depth + 1)]),
    );
  }

  #redactText(text: string, name = ''): string {
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
    return '[nested too deep]';
  }
}
