import type { LogLine } from '@interlude/protocol/read-models';

/** `[2026-11-20T10:26:44.590Z] INFO  [outbox] message`, as the runner writes it: one line, whatever the message holds. */
export function textLine({ occurredAt, level, component, message }: LogLine): string {
  const time = new Date(occurredAt).toISOString();
  return `[${time}] ${level.toUpperCase().padEnd(5)} [${oneLine(component)}] ${oneLine(message)}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to go
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to go
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

function oneLine(text: string): string {
  const plain = text.replace(SEQUENCES, '').replaceAll('\t', ' ').replace(CONTROLS, '');
  const parts = plain.split(/[\r\n\u2028\u2029]+/).map((part) => part.trim());
  return parts.filter((part) => part !== '').join(' ⏎ ');
}
