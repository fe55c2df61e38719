import { stripVTControlCharacters } from 'node:util';
import type { LogLevel, LogMarker } from '@/lib/protocol/envelope';

export interface LogEntry {
  /** Epoch milliseconds. */
  at: number;
  level: LogLevel;
  component: string;
  message: string;
  /** What the line stands for, where it was written to mark a place. */
  marker?: LogMarker;
}

/** `[2026-11-20T10:26:44.590Z] INFO  [outbox] message`: always one line, whatever the message holds. */
export function logLine({ at, level, component, message }: LogEntry): string {
  return `[${new Date(at).toISOString()}] ${level.toUpperCase().padEnd(5)} [${oneLine(component)}] ${oneLine(message)}`;
}

/** Without colours and other control characters; a line break shows as ` ⏎ `. */
export function oneLine(text: string): string {
  return (
    stripVTControlCharacters(text)
      .replace(/\s*(?:\r\n|\r|\n|\u2028|\u2029)\s*/g, ' ⏎ ')
      .replace(/\t/g, ' ')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to go
      .replace(/[\u0000-\u001f\u007f-\u009f]/g, '')
      .trim()
  );
}
