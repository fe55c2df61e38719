import type { AgUiEvent } from './ag-ui';
import { cutText } from './cut-text';
import { fieldsOf, listOf, numberOf, textOf } from './fields';
import { MAX_CAPTION, MAX_OUTPUT_PARTS, MAX_TASK_OUTPUT_BYTES } from './limits';
import { utf8Length } from './log-text';

/**
 * What a background task has written to its output file, as far as it is kept: the newest `MAX_TASK_OUTPUT_BYTES`.
 *
 * Ordering: a piece is what the file holds between two of its places. One that begins where the last one ended goes on
 * from it; one further on leaves a hole; one before that place starts over.
 * Failure: whatever an event says, it becomes some output. What is kept never depends on how the pieces were cut.
 */
export interface TaskOutput {
  /** In the order of the file. Between two of them, and before the first one, something is not kept. */
  parts: OutputPart[];
  /** How many secrets the runner took out of all that it told. */
  redacted: number;
  /** When something was last told of it, on the runner's clock. */
  lastAt: number;
  /** Nothing more comes. */
  hasEnded: boolean;
  /** Why the rest could not be read. */
  error: string | null;
}

export interface OutputPart {
  /** Bytes of the file. Where secrets were taken out of a text that is cut, `from` is about right. */
  from: number;
  to: number;
  text: string;
}

/** The output once this `task:output` has come. @param occurredAt when it was told, on the runner's clock */
export function appendOutput(output: TaskOutput | null, event: AgUiEvent, occurredAt: number): TaskOutput {
  const value = fieldsOf(event.value);
  if (isWhole(event)) return storedOutput(fieldsOf(value.output));
  const { parts = [], redacted = 0, hasEnded = false, error = null } = output ?? {};
  const text = textOf(value.text) ?? '';
  const why = textOf(value.error);
  return {
    parts: newest(withPiece(parts, text, placeOf(value.from), placeOf(value.to))),
    redacted: Math.min(redacted + (placeOf(value.redacted) ?? 0), Number.MAX_SAFE_INTEGER),
    lastAt: occurredAt,
    hasEnded: value.ended === true || (hasEnded && text === ''),
    error: why !== null ? cutText(why, MAX_CAPTION) : text === '' ? error : null,
  };
}

/** How much its file holds, as far as was told. */
export function outputSize({ parts }: TaskOutput): number {
  return parts.at(-1)?.to ?? 0;
}

function isWhole(event: AgUiEvent): boolean {
  return fieldsOf(event.metadata?.interlude).whole === true;
}

function withPiece(parts: readonly OutputPart[], text: string, saidFrom: number | null, saidTo: number | null) {
  const last = parts.at(-1);
  if (text === '') return [...parts];
  const from = saidFrom ?? last?.to ?? 0;
  const to = Math.max(from, saidTo ?? from + utf8Length(text));
  if (last === undefined || from < last.to) return [{ from, to, text }];
  if (from > last.to) return [...parts, { from, to, text }];
  return [...parts.slice(0, -1), { ...last, to, text: last.text + text }];
}

/** The longest end of it that may be kept. */
function newest(parts: readonly OutputPart[]): OutputPart[] {
  const kept: OutputPart[] = [];
  let room = MAX_TASK_OUTPUT_BYTES;
  for (const part of parts.slice(-MAX_OUTPUT_PARTS).reverse()) {
    // a UTF-16 unit is 3 bytes at most: most texts need not be measured
    const bytes = part.text.length * 3 <= room ? null : encoder.encode(part.text);
    if (bytes !== null && bytes.length > room) {
      const cut = cutBefore(bytes, bytes.length - room);
      const text = decoder.decode(bytes.subarray(cut));
      if (text !== '') kept.push({ ...part, from: Math.min(part.from + cut, part.to), text });
      break;
    }
    kept.push(part);
    room -= bytes?.length ?? utf8Length(part.text);
  }
  return kept.reverse();
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Where the first whole character from there on begins. */
function cutBefore(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && ((bytes[at] as number) & 0xc0) === 0x80) at += 1;
  return at;
}

function storedOutput({ parts, redacted, lastAt, hasEnded, error }: Record<string, unknown>): TaskOutput {
  const said = listOf(parts).map((part) => {
    const { from, to, text } = fieldsOf(part);
    const start = placeOf(from) ?? 0;
    return { from: start, to: Math.max(start, placeOf(to) ?? 0), text: textOf(text) ?? '' };
  });
  return {
    parts: newest(said.filter(({ text }) => text !== '')),
    redacted: placeOf(redacted) ?? 0,
    lastAt: placeOf(lastAt) ?? 0,
    hasEnded: hasEnded === true,
    error: textOf(error),
  };
}

function placeOf(value: unknown): number | null {
  const number = numberOf(value);
  return number !== null && Number.isSafeInteger(number) && number >= 0 ? number : null;
}
