import { join } from 'node:path';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateLogMessage } from '@interlude/protocol/log-text';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/record-vocabulary';
import { truncateText } from '@interlude/protocol/text';
import { LevelSwitch } from './level-switch';
import { LogFile, type LogFileOptions } from './log-file';
import { type LogAbout, type LogEntry, logLine, oneLine } from './log-line';
import { fileNameOf } from './log-name';
import { Redactor } from './redactor';

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
    const marker = { kind: 'level' as const, level: now, previous, by: truncateText(by, MAX_ID_LENGTH) };
    take({ at: Date.now(), level: 'warn', component: 'runner', message, marker });
  });
  return loggerOf('runner');

  function take(said: LogEntry): void {
    const { text, redacted, missing } = redactor.redact(said.component, said.message);
    // Cut last: a line break takes more room as its sign.
    const entry = {
      ...said,
      message: truncateLogMessage(oneLine(text), missing),
      ...(redacted > 0 ? { redacted } : {}),
    };
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
