import { stripVTControlCharacters } from 'node:util';
import type { LogRecord } from '@interlude/protocol/envelope';
import type { SentInsight } from '@interlude/protocol/insight';
import type { LogLevel } from '@interlude/protocol/record-vocabulary';

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
export function oneLine(text: string): string {
  const plain = plainText(text);
  if (!/[\r\n\u2028\u2029]/.test(plain)) return plain.trim();
  // Line by line: one expression for a break and the blanks around it would take the square of the blanks' number.
  const lines = plain.split(/[\r\n\u2028\u2029]+/).map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ⏎ ');
}

/** Without colours and control characters, but with its line breaks. */
export function plainText(text: string): string {
  return (
    stripVTControlCharacters(text)
      .replace(/\t/g, ' ')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to go
      .replace(/[\u0000-\u0009\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '')
  );
}
