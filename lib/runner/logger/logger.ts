import { createHash } from 'node:crypto';
import { closeSync, fstatSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cutText } from '@interlude/protocol/cut-text';
import type { LogRecord } from '@interlude/protocol/envelope';
import type { SentInsight } from '@interlude/protocol/insight';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/log-levels';
import { cutLogMessage } from '@interlude/protocol/log-text';
import type { Outbox } from '../outbox/outbox';
import { LevelSwitch } from './level-switch';
import { plainText, Redactor } from './redactor';

/**
 * The log of one agent: a file of its own, and every line also as a record for the dashboard. Secrets reach neither.
 *
 * Ordering: a line is in the file before the call returns, and reaches `onRecord` in the order of the calls.
 * Failure: nothing here throws. A line that can't be written goes to stderr when it is an error or fatal.
 */
export interface LoggerOptions {
  agentId: string;
  /** Where the files are; the agent's is `<name>.log` in it. */
  dir: string;
  /** Each line at or above the level, for the outbox. */
  onRecord?: (entry: LogEntry) => void;
  /** INTERLUDE_LOG_LEVEL, or a switch that others turn as well. */
  level?: LevelSwitch | string | undefined;
  /** What takes the secrets out, where others tell it of some. */
  redactor?: Redactor;
  file?: LogFileOptions;
  stderr?: (text: string) => void;
}

export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
  fatal(message: string): void;
  /** @param about what else the line's record carries */
  log(level: LogLevel, message: string, about?: LogAbout): void;
  /** The same file, said by another part of the runner. */
  child(component: string): Logger;
  readonly level: LevelSwitch;
  /** What takes the secrets out: it can be told of more. */
  readonly redactor: Redactor;
  readonly file: string;
  close(): void;
}

export function createLogger(options: LoggerOptions): Logger {
  const level = options.level instanceof LevelSwitch ? options.level : new LevelSwitch(options.level);
  const file = new LogFile(join(options.dir, `${fileNameOf(options.agentId)}.log`), options.file);
  const stderr = options.stderr ?? ((text: string) => process.stderr.write(text));
  const redactor = options.redactor ?? new Redactor();
  level.onChange(({ level: now, previous, by, isRestored }) => {
    if (isRestored) return;
    // Whatever the level: where only worse is written from here on, this still says why.
    const message = `log level ${previous} → ${now} (${by})`;
    const marker = { kind: 'level' as const, level: now, previous, by: cutText(by, MAX_ID_LENGTH) };
    take({ at: Date.now(), level: 'warn', component: 'runner', message, marker });
  });
  return loggerOf('runner');

  function take(said: LogEntry): void {
    const { text, redacted, missing } = redactor.redact(said.component, said.message);
    // Cut last: a line break takes more room as its sign.
    const entry = { ...said, message: cutLogMessage(oneLine(text), missing), ...(redacted > 0 ? { redacted } : {}) };
    const line = logLine(entry);
    try {
      file.write(line);
    } catch (error) {
      const grave = entry.level === 'error' || entry.level === 'fatal';
      const reason = (error as NodeJS.ErrnoException).code ?? String(error);
      if (grave) stderr(`${line} (not in ${file.file}: ${reason})\n`);
    }
    try {
      options.onRecord?.(entry);
    } catch (error) {
      // An outbox that is stopped or full: the line stands in the file.
      if (entry.level === 'fatal') stderr(`${line} (not sent: ${String(error)})\n`);
    }
  }

  function loggerOf(component: string): Logger {
    const log = (said: LogLevel, message: string, about: LogAbout = {}) => {
      // What machines are told does not depend on how much people want to read.
      const isBelow = LOG_LEVELS.indexOf(said) < LOG_LEVELS.indexOf(level.get());
      if (isBelow && about.insight === undefined) return;
      take({ at: Date.now(), level: said, component, message: String(message), ...about });
    };
    return {
      debug: (message) => log('debug', message),
      info: (message) => log('info', message),
      warn: (message) => log('warn', message),
      error: (message) => log('error', message),
      fatal: (message) => log('fatal', message),
      log,
      child: loggerOf,
      level,
      redactor,
      file: file.file,
      close: () => {
        level.close();
        file.close();
      },
    };
  }
}

/** What a line may carry besides its text. */
export interface LogAbout extends Pick<LogRecord['log'], 'marker'> {
  insight?: SentInsight;
  /** When it was (epoch milliseconds), where that is not now. */
  at?: number;
}

export interface LogEntry extends LogAbout {
  /** Epoch milliseconds. */
  at: number;
  level: LogLevel;
  component: string;
  message: string;
  /** How many secrets were taken out of it, where any were. */
  redacted?: number;
}

/** `[2026-11-20T10:26:44.590Z] INFO  [outbox] message`: always one line, whatever the message holds. */
export function logLine({ at, level, component, message }: LogEntry): string {
  return `[${new Date(at).toISOString()}] ${level.toUpperCase().padEnd(5)} [${oneLine(component)}] ${oneLine(message)}`;
}

/** Without colours and other control characters; a line break shows as ` ⏎ `. */
function oneLine(text: string): string {
  const plain = plainText(text);
  if (!/[\r\n\u2028\u2029]/.test(plain)) return plain.trim();
  // Line by line: one expression for a break and the blanks around it would take the square of the blanks' number.
  const lines = plain.split(/[\r\n\u2028\u2029]+/).map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ⏎ ');
}

interface LogFileOptions {
  /** A file that would grow beyond this is put aside first. Default 10 MiB. */
  maxBytes?: number;
  /** How many are kept beside the one written to: `.1` is the newest. Default 5. */
  keep?: number;
}

/**
 * A file that lines are appended to, with rotation by size.
 *
 * Ordering: a line is in the kernel's hands when `write` returns, so a crash right after it loses nothing.
 * Failure: `write` throws; the next one opens the file anew. A file that was moved or deleted by somebody else is made
 * again within a second.
 */
export class LogFile {
  readonly file: string;
  readonly #maxBytes: number;
  readonly #keep: number;
  #fd: number | null = null;
  #bytes = 0;
  #lookedAt = 0;

  constructor(file: string, { maxBytes = 10 * 1024 * 1024, keep = 5 }: LogFileOptions = {}) {
    this.file = file;
    this.#maxBytes = maxBytes;
    this.#keep = keep;
  }

  write(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    try {
      this.#open();
      if (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes) this.#rotate();
      let written = 0;
      while (written < bytes.length) written += writeSync(this.#fd as number, bytes, written);
      this.#bytes += bytes.length;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = null;
    if (fd === null) return;
    try {
      closeSync(fd);
    } catch {
      // it is gone either way
    }
  }

  #open(): void {
    if (this.#fd !== null && !this.#isStillThere()) this.close();
    if (this.#fd !== null) return;
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
    this.#fd = openSync(this.file, 'a', 0o600);
    this.#bytes = fstatSync(this.#fd).size;
  }

  #isStillThere(): boolean {
    const now = Date.now();
    if (now - this.#lookedAt < 1_000 && now >= this.#lookedAt) return true;
    this.#lookedAt = now;
    const there = statSync(this.file, { throwIfNoEntry: false });
    return there !== undefined && there.ino === fstatSync(this.#fd as number).ino;
  }

  #rotate(): void {
    this.close();
    rmSync(`${this.file}.${this.#keep}`, { force: true });
    for (let number = this.#keep - 1; number >= 1; number -= 1) moveIfThere(`${this.file}.${number}`, number + 1);
    if (this.#keep > 0) renameSync(this.file, `${this.file}.1`);
    else rmSync(this.file, { force: true });
    this.#open();

    function moveIfThere(file: string, to: number): void {
      if (statSync(file, { throwIfNoEntry: false })) renameSync(file, file.replace(/\d+$/, String(to)));
    }
  }
}

/** Longest base name: with a suffix and a rotation number it still fits every file system. */
const LONGEST = 180;

/**
 * The name an agent's files have. Everything outside `[a-zA-Z0-9_.-]` becomes `_`; wherever that changed the id, a short
 * hash of the id follows, so that two ids never meet in one file.
 */
export function fileNameOf(agentId: string): string {
  const plain = agentId.replace(/[^a-zA-Z0-9_.-]/g, '_');
  // Case is changed as well as far as some file systems are concerned, and a leading dot would hide the file.
  const kept = plain === agentId && plain.length <= LONGEST && /^[a-z0-9_][a-z0-9_.-]*$/.test(plain);
  if (kept) return plain;
  const hash = createHash('sha256').update(agentId).digest('hex').slice(0, 10);
  return `${plain.replace(/^[.-]*/, (odd) => (odd === '' && plain !== '' ? '' : '_')).slice(0, LONGEST - hash.length - 1)}-${hash}`;
}

/**
 * A logger whose lines go straight to an outbox.
 *
 * Ordering: what is logged and enqueued in one tick is stored in one transaction, in the order of the calls.
 * Failure: a line that the outbox does not take stands in the file alone.
 */
export function createOutboxLogger(options: Omit<LoggerOptions, 'onRecord'>, outbox: Pick<Outbox, 'enqueue'>): Logger {
  const { agentId } = options;
  return createLogger({
    ...options,
    onRecord: ({ at, ...log }) => {
      outbox.enqueue({ kind: 'log', agentId, occurredAt: at, log }).catch(() => undefined);
    },
  });
}
