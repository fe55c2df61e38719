import { createHash } from 'node:crypto';
import { closeSync, fstatSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LogRecord } from '@interlude/protocol/envelope';
import type { SentInsight } from '@interlude/protocol/insight';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateLogMessage, truncateText } from '@interlude/protocol/text';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/vocabulary';
import type { Outbox } from '../outbox/outbox';
import { LevelSwitch } from './level-switch';
import { plainText, Redactor } from './redactor';

export interface LoggerOptions {
  agentId: string;
  /** The folder of `<name>.log`. */
  dir: string;
  /** Receives each line at or above the level. */
  onRecord?: (entry: LogEntry) => void;
  /** INTERLUDE_LOG_LEVEL, or a shared switch. */
  level?: LevelSwitch | string | undefined;
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
  log(level: LogLevel, message: string, about?: LogAbout): void;
  /** A logger for another component, with the same file. */
  child(component: string): Logger;
  readonly level: LevelSwitch;
  readonly redactor: Redactor;
  readonly file: string;
  close(): void;
}

/**
 * The log of one agent: a file, and a record for the dashboard per line. Secrets are redacted from both.
 *
 * Ordering: a line is in the file before the call returns, and reaches `onRecord` in call order.
 * Failure: never throws. Errors and fatal lines that can't be written go to stderr.
 */
export function createLogger(options: LoggerOptions): Logger {
  const level = options.level instanceof LevelSwitch ? options.level : new LevelSwitch(options.level);
  const file = new LogFile(join(options.dir, `${fileNameOf(options.agentId)}.log`), options.file);
  const stderr = options.stderr ?? ((text: string) => process.stderr.write(text));
  const redactor = options.redactor ?? new Redactor();
  level.onChange(({ level: now, previous, by, isRestored }) => {
    if (isRestored) return;
    // Written at every level, because the line explains missing lines.
    const message = `log level ${previous} → ${now} (${by})`;
    const marker = { kind: 'level' as const, level: now, previous, by: truncateText(by, MAX_ID_LENGTH) };
    write({ at: Date.now(), level: 'warn', component: 'runner', message, marker });
  });
  return loggerOf('runner');

  function write(raw: LogEntry): void {
    const { text, redacted, missing } = redactor.redact(raw.component, raw.message);
    // Truncated last, because the symbol for a line break is longer than the break.
    const entry = {
      ...raw,
      message: truncateLogMessage(oneLine(text), missing),
      ...(redacted > 0 ? { redacted } : {}),
    };
    const line = logLine(entry);
    try {
      file.write(line);
    } catch (error) {
      const isSevere = entry.level === 'error' || entry.level === 'fatal';
      const reason = (error as NodeJS.ErrnoException).code ?? String(error);
      if (isSevere) stderr(`${line} (not in ${file.file}: ${reason})\n`);
    }
    try {
      options.onRecord?.(entry);
    } catch (error) {
      // The outbox is stopped or full; the file has the line.
      if (entry.level === 'fatal') stderr(`${line} (not sent: ${String(error)})\n`);
    }
  }

  function loggerOf(component: string): Logger {
    const log = (lineLevel: LogLevel, message: string, about: LogAbout = {}) => {
      // Insights are for machines and ignore the level.
      const isBelow = LOG_LEVELS.indexOf(lineLevel) < LOG_LEVELS.indexOf(level.get());
      if (isBelow && about.insight === undefined) return;
      write({ at: Date.now(), level: lineLevel, component, message: String(message), ...about });
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

export interface LogAbout extends Pick<LogRecord['log'], 'marker'> {
  insight?: SentInsight;
  /** Epoch milliseconds; default: now. */
  at?: number;
}

export interface LogEntry extends LogAbout {
  /** Epoch milliseconds. */
  at: number;
  level: LogLevel;
  component: string;
  message: string;
  /** Number of redacted secrets, if any. */
  redacted?: number;
}

/** `[2026-11-20T10:26:44.590Z] INFO  [outbox] message`, always one line. */
export function logLine({ at, level, component, message }: LogEntry): string {
  return `[${new Date(at).toISOString()}] ${level.toUpperCase().padEnd(5)} [${oneLine(component)}] ${oneLine(message)}`;
}

/** Removes control characters and replaces line breaks with ` ⏎ `. */
function oneLine(text: string): string {
  const plain = plainText(text);
  if (!/[\r\n\u2028\u2029]/.test(plain)) return plain.trim();
  // Splits first, because a regular expression for a break and its surrounding blanks takes quadratic time.
  const lines = plain.split(/[\r\n\u2028\u2029]+/).map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ⏎ ');
}

interface LogFileOptions {
  /** Rotates a file that would exceed this. Default 10 MiB. */
  maxBytes?: number;
  /** Number of rotated files; `.1` is the newest. Default 5. */
  keep?: number;
}

/**
 * An append-only file with rotation by size.
 *
 * Ordering: `write` returns once the kernel has the line, so a crash right after it loses nothing.
 * Failure: after `write` throws, the next call opens the file again. A file that another program moved or deleted is
 * created again within a second.
 */
export class LogFile {
  readonly file: string;
  readonly #maxBytes: number;
  readonly #keep: number;
  #fd: number | null = null;
  #bytes = 0;
  #checkedAt = 0;

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
      // The file is closed either way.
    }
  }

  #open(): void {
    if (this.#fd !== null && !this.#isSameFile()) this.close();
    if (this.#fd !== null) return;
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
    this.#fd = openSync(this.file, 'a', 0o600);
    this.#bytes = fstatSync(this.#fd).size;
  }

  #isSameFile(): boolean {
    const now = Date.now();
    if (now - this.#checkedAt < 1_000 && now >= this.#checkedAt) return true;
    this.#checkedAt = now;
    const current = statSync(this.file, { throwIfNoEntry: false });
    return current !== undefined && current.ino === fstatSync(this.#fd as number).ino;
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

/** Fits every file system, with a suffix and a rotation number. */
const MAX_BASE_NAME = 180;

/**
 * The base name of an agent's files: its id or, if the id has characters other than `[a-z0-9_.-]`, a similar name with
 * a hash that keeps two ids apart.
 */
export function fileNameOf(agentId: string): string {
  const plain = agentId.replace(/[^a-zA-Z0-9_.-]/g, '_');
  // Some file systems ignore case, and a leading dot hides a file.
  const isSafe = plain === agentId && plain.length <= MAX_BASE_NAME && /^[a-z0-9_][a-z0-9_.-]*$/.test(plain);
  if (isSafe) return plain;
  const hash = createHash('sha256').update(agentId).digest('hex').slice(0, 10);
  return `${plain.replace(/^[.-]*/, (start) => (start === '' && plain !== '' ? '' : '_')).slice(0, MAX_BASE_NAME - hash.length - 1)}-${hash}`;
}

/**
 * A logger whose records go to an outbox.
 *
 * Ordering: lines and records of one tick are stored in one transaction, in call order.
 * Failure: a line that the outbox refuses stays in the file.
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
