import type { AgUiEvent } from './ag-ui';
import { fieldsOf, listOf, numberOf, textOf } from './fields';
import { MAX_CAPTION, MAX_OUTPUT_PARTS, MAX_TASK_OUTPUT_BYTES } from './limits';
import { utf8Length } from './log-text';
import type { TaskOutput } from './read-models';
import { truncateText } from './text';

/**
 * The kept output of a background task: the newest `MAX_TASK_OUTPUT_BYTES` of its file.
 *
 * Ordering: a piece covers a byte range of the file. One that starts where the last ended continues it; one further on
 * leaves a hole; an earlier one starts the output over.
 * Failure: every event yields some output, however malformed. The result does not depend on how pieces were cut.
 */

/** How much its file holds, as far as was told. */
export function outputSize({ parts }: TaskOutput): number {
  return parts.at(-1)?.to ?? 0;
}

/** The output once these `task:output` have come, each with the time at which it was told. */
export function appendOutputs(
  output: TaskOutput | null,
  told: Iterable<readonly [event: AgUiEvent, occurredAt: number]>,
): TaskOutput | null {
  let draft: OutputDraft | null = null;
  for (const [event, occurredAt] of told) {
    draft ??= new OutputDraft(output);
    draft.add(event, occurredAt);
  }
  return draft === null ? output : draft.result();
}

const NOTHING = { redacted: 0, lastAt: 0, hasEnded: false, error: null };

/** A part whose text has not been joined. */
interface DraftPart {
  from: number;
  to: number;
  pieces: { text: string; bytes: number }[];
}

/**
 * An output to which pieces are added: each takes the time that its own length takes, however much there is. What is
 * beyond the limits goes in the end, and in between once it is as much again.
 */
export class OutputDraft {
  #said: Omit<TaskOutput, 'parts'> = NOTHING;
  #parts: DraftPart[] = [];
  #bytes = 0;

  constructor(output: TaskOutput | null) {
    if (output !== null) this.#begin(output);
  }

  add(event: AgUiEvent, occurredAt: number): void {
    const value = fieldsOf(event.value);
    if (fieldsOf(event.metadata?.interlude).whole === true) {
      this.#begin(storedOutput(fieldsOf(value.output)));
      return;
    }
    const text = textOf(value.text) ?? '';
    const why = textOf(value.error);
    const { redacted, hasEnded, error } = this.#said;
    this.#said = {
      redacted: Math.min(redacted + (placeOf(value.redacted) ?? 0), Number.MAX_SAFE_INTEGER),
      lastAt: text === '' ? this.#said.lastAt || occurredAt : (placeOf(value.written_at) ?? occurredAt),
      hasEnded: value.ended === true || (hasEnded && text === ''),
      error: why !== null ? truncateText(why, MAX_CAPTION) : text === '' ? error : null,
    };
    if (text !== '') this.#addPiece(text, placeOf(value.redacted) ?? 0, placeOf(value.from), placeOf(value.to));
    if (this.#bytes > 2 * MAX_TASK_OUTPUT_BYTES || this.#parts.length > 2 * MAX_OUTPUT_PARTS) this.#letGo();
  }

  result(): TaskOutput {
    this.#letGo();
    const parts = this.#parts.map(({ pieces, ...place }) => ({
      ...place,
      text: pieces.map(({ text }) => text).join(''),
    }));
    return { ...this.#said, parts };
  }

  /** Goes on from an output, whatever there was. */
  #begin({ parts, ...said }: TaskOutput): void {
    this.#said = said;
    this.#parts = parts.map(({ text, ...place }) => ({ ...place, pieces: [{ text, bytes: utf8Length(text) }] }));
    this.#bytes = this.#parts.reduce((sum, { pieces }) => sum + (pieces[0]?.bytes ?? 0), 0);
  }

  #addPiece(text: string, redacted: number, saidFrom: number | null, saidTo: number | null): void {
    const last = this.#parts.at(-1);
    const bytes = utf8Length(text);
    const from = saidFrom ?? last?.to ?? 0;
    const to = Math.max(from, saidTo ?? from + bytes);
    const startsOver = last !== undefined && from < last.to;
    if (startsOver) {
      [this.#parts, this.#bytes] = [[], 0];
      this.#said.redacted = redacted;
    }
    this.#bytes += bytes;
    if (last === undefined || startsOver || from > last.to) this.#parts.push({ from, to, pieces: [{ text, bytes }] });
    else {
      last.pieces.push({ text, bytes });
      last.to = to;
    }
  }

  /** Leaves the longest end of it that may be kept. */
  #letGo(): void {
    for (const { pieces } of this.#parts.splice(0, Math.max(0, this.#parts.length - MAX_OUTPUT_PARTS))) {
      for (const { bytes } of pieces) this.#bytes -= bytes;
    }
    while (this.#bytes > MAX_TASK_OUTPUT_BYTES) {
      const part = this.#parts[0] as DraftPart;
      let gone = 0;
      let cut = 0;
      for (const { bytes } of part.pieces) {
        if (this.#bytes - cut - bytes < MAX_TASK_OUTPUT_BYTES) break;
        cut += bytes;
        gone += 1;
      }
      part.pieces.splice(0, gone);
      const [first] = part.pieces;
      const tooMuch = this.#bytes - cut - MAX_TASK_OUTPUT_BYTES;
      if (first !== undefined && tooMuch > 0) {
        const text = lastBytes(first.text, first.bytes - tooMuch);
        const left = utf8Length(text);
        cut += first.bytes - left;
        part.pieces[0] = { text, bytes: left };
      }
      this.#bytes -= cut;
      part.from = Math.min(part.from + cut, part.to);
      if (part.pieces.every(({ bytes }) => bytes === 0)) this.#parts.shift();
    }
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The longest end of a text that has at most so many bytes as UTF-8. */
function lastBytes(text: string, most: number): string {
  const bytes = encoder.encode(text);
  let from = bytes.length - most;
  // never within a character
  while (from < bytes.length && ((bytes[from] as number) & 0xc0) === 0x80) from += 1;
  return decoder.decode(bytes.subarray(from));
}

function storedOutput({ parts, redacted, lastAt, hasEnded, error }: Record<string, unknown>): TaskOutput {
  const said = listOf(parts).map((part) => {
    const { from, to, text } = fieldsOf(part);
    const start = placeOf(from) ?? 0;
    return { from: start, to: Math.max(start, placeOf(to) ?? 0), text: textOf(text) ?? '' };
  });
  return {
    parts: said.filter(({ text }) => text !== ''),
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
