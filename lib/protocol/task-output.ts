import type { AgUiEvent } from './ag-ui';
import { CUSTOM, customName } from './event-fields';
import { fieldsOf, listOf, numberOf, textOf } from './fields';
import { readInterlude } from './interlude-metadata';
import { MAX_CAPTION, MAX_OUTPUT_PARTS, MAX_TASK_OUTPUT_BYTES } from './limits';
import type { TaskOutput, TaskOutputDetail } from './read-models';
import { truncateText, utf8Length } from './text';

/**
 * The kept output of a background task: the newest `MAX_TASK_OUTPUT_BYTES` of its file.
 *
 * Ordering: a piece covers a byte range of the file. A piece that starts where the last one ended continues the output,
 * a later one leaves a hole, and an earlier one restarts the output.
 * Failure: every event yields some output, however malformed. The result does not depend on how pieces were cut.
 */

/** Known size of the output file in bytes. */
export function outputSize({ parts }: TaskOutput): number {
  return parts.at(-1)?.to ?? 0;
}

/** The output after further `task:output` events, each with its `occurredAt`. */
export function appendOutputs(
  output: TaskOutput | null,
  events: Iterable<readonly [event: AgUiEvent, occurredAt: number]>,
): TaskOutput | null {
  let draft: OutputDraft | null = null;
  for (const [event, occurredAt] of events) {
    draft ??= new OutputDraft(output);
    draft.add(event, occurredAt);
  }
  return draft === null ? output : draft.result();
}

/** The output of a task's run after further events of its session. Ingest has marked each event with its task. */
export function foldTaskOutput<Detail extends Pick<TaskOutputDetail, 'taskPosition' | 'output'>>(
  detail: Detail,
  entries: readonly { event: AgUiEvent; occurredAt: number }[],
): Detail {
  const outputs = entries
    .filter(
      ({ event }) =>
        customName(event) === CUSTOM.taskOutput && readInterlude(event).taskPosition === detail.taskPosition,
    )
    .map(({ event, occurredAt }) => [event, occurredAt] as const);
  return outputs.length === 0 ? detail : { ...detail, output: appendOutputs(detail.output, outputs) };
}

const NOTHING = { redacted: 0, lastAt: 0, hasEnded: false, error: null };

/** A part whose text is not joined yet. */
interface DraftPart {
  from: number;
  to: number;
  pieces: { text: string; bytes: number }[];
}

/**
 * A mutable output. Adding a piece takes time proportional to the piece. Output beyond the limits is dropped at the end,
 * and in between once it has doubled.
 */
export class OutputDraft {
  #summary: Omit<TaskOutput, 'parts'> = NOTHING;
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
    const failure = textOf(value.error);
    const { redacted, hasEnded, error } = this.#summary;
    this.#summary = {
      redacted: Math.min(redacted + (countOf(value.redacted) ?? 0), Number.MAX_SAFE_INTEGER),
      lastAt: text === '' ? this.#summary.lastAt || occurredAt : (countOf(value.written_at) ?? occurredAt),
      hasEnded: value.ended === true || (hasEnded && text === ''),
      error: failure !== null ? truncateText(failure, MAX_CAPTION) : text === '' ? error : null,
    };
    if (text !== '') this.#addPiece(text, countOf(value.redacted) ?? 0, countOf(value.from), countOf(value.to));
    if (this.#bytes > 2 * MAX_TASK_OUTPUT_BYTES || this.#parts.length > 2 * MAX_OUTPUT_PARTS) this.#dropExcess();
  }

  result(): TaskOutput {
    this.#dropExcess();
    const parts = this.#parts.map(({ pieces, ...place }) => ({
      ...place,
      text: pieces.map(({ text }) => text).join(''),
    }));
    return { ...this.#summary, parts };
  }

  /** Replaces everything by an output. */
  #begin({ parts, ...summary }: TaskOutput): void {
    this.#summary = summary;
    this.#parts = parts.map(({ text, ...place }) => ({ ...place, pieces: [{ text, bytes: utf8Length(text) }] }));
    this.#bytes = this.#parts.reduce((sum, { pieces }) => sum + (pieces[0]?.bytes ?? 0), 0);
  }

  #addPiece(text: string, redacted: number, givenFrom: number | null, givenTo: number | null): void {
    const last = this.#parts.at(-1);
    const bytes = utf8Length(text);
    const from = givenFrom ?? last?.to ?? 0;
    const to = Math.max(from, givenTo ?? from + bytes);
    const startsOver = last !== undefined && from < last.to;
    if (startsOver) {
      [this.#parts, this.#bytes] = [[], 0];
      this.#summary.redacted = redacted;
    }
    this.#bytes += bytes;
    if (last === undefined || startsOver || from > last.to) this.#parts.push({ from, to, pieces: [{ text, bytes }] });
    else {
      last.pieces.push({ text, bytes });
      last.to = to;
    }
  }

  /** Keeps the longest tail within the limits. */
  #dropExcess(): void {
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
      const excess = this.#bytes - cut - MAX_TASK_OUTPUT_BYTES;
      if (first !== undefined && excess > 0) {
        const text = lastBytes(first.text, first.bytes - excess);
        const leftBytes = utf8Length(text);
        cut += first.bytes - leftBytes;
        part.pieces[0] = { text, bytes: leftBytes };
      }
      this.#bytes -= cut;
      part.from = Math.min(part.from + cut, part.to);
      if (part.pieces.every(({ bytes }) => bytes === 0)) this.#parts.shift();
    }
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The longest tail of a text of at most `most` UTF-8 bytes. */
function lastBytes(text: string, most: number): string {
  const bytes = encoder.encode(text);
  let from = bytes.length - most;
  // Not within a character.
  while (from < bytes.length && ((bytes[from] as number) & 0xc0) === 0x80) from += 1;
  return decoder.decode(bytes.subarray(from));
}

function storedOutput({ parts, redacted, lastAt, hasEnded, error }: Record<string, unknown>): TaskOutput {
  const stored = listOf(parts).map((part) => {
    const { from, to, text } = fieldsOf(part);
    const start = countOf(from) ?? 0;
    return { from: start, to: Math.max(start, countOf(to) ?? 0), text: textOf(text) ?? '' };
  });
  return {
    parts: stored.filter(({ text }) => text !== ''),
    redacted: countOf(redacted) ?? 0,
    lastAt: countOf(lastAt) ?? 0,
    hasEnded: hasEnded === true,
    error: textOf(error),
  };
}

function countOf(value: unknown): number | null {
  const number = numberOf(value);
  return number !== null && Number.isSafeInteger(number) && number >= 0 ? number : null;
}
