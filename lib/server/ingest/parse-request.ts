import { ingestRequestSchema, type ProducerRef, rawRecordSchema } from '@interlude/protocol/envelope';
import { AppError } from '@interlude/protocol/errors';
import { measureJson } from '@interlude/protocol/json';
import { MAX_JSON_DEPTH, MAX_RECORD_VALUES } from '@interlude/protocol/limits';
import type * as z from 'zod';
import type { Yielder } from '@/db/yield-to-loop';

/** A record before validation. Only its `seq` has been checked. */
export type RawRecord = { seq: number; [field: string]: unknown };

/**
 * Parses the envelope of a request. `validateRecord` checks each record later.
 * @throws AppError `malformed` with the invalid field, or the record after which one is missing
 */
export async function parseRequest(
  body: unknown,
  yielder: Yielder,
): Promise<{ producer: ProducerRef; records: RawRecord[] }> {
  const parsed = ingestRequestSchema.safeParse(body);
  if (!parsed.success) throw invalid(parsed.error);
  const { producer, records } = parsed.data;
  const raws = await yielder.map(records, (record, index) => {
    const head = rawRecordSchema.safeParse(record);
    if (!head.success) throw invalid(head.error, ['records', index]);
    return record as RawRecord;
  });
  requireDense(raws);
  return { producer: { id: producer.id, epoch: producer.epoch }, records: raws };
}

function invalid(error: z.ZodError, at: PropertyKey[] = []): AppError {
  return new AppError('malformed', `${describeIssue(error, at)}. See PROTOCOL.md, Ingest.`);
}

/** A gap within a request is the sender's error, which a retry can't fix, unlike a request that arrives too early. */
function requireDense(records: RawRecord[]): void {
  let last = (records[0]?.seq ?? 1) - 1;
  for (const [index, { seq }] of records.entries()) {
    if (seq > last + 1) {
      throw new AppError(
        'malformed',
        `records[${index}].seq is ${seq}, but ${last + 1} must come first. Send records in order.`,
      );
    }
    last = Math.max(last, seq);
  }
}

/** The first issue with its path: `records[3].seq: …`. */
export function describeIssue(error: z.ZodError, at: PropertyKey[] = []): string {
  const issue = error.issues[0];
  if (issue === undefined) return 'Invalid input';
  const path = [...at, ...issue.path].map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return path === '' ? issue.message : `${path.replace(/^\./, '')}: ${issue.message}`;
}

const startDecoder = new TextDecoder('utf-8', { fatal: true });
const middleDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses JSON and limits its depth and number of values, so it is safe to walk recursively. Strings may hold half a
 * surrogate pair, which `wellFormed` repairs.
 * @throws AppError `malformed` with the place of the error
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) throw malformed('The body is empty. Send a JSON object.');
  const { values, tooDeepAt } = measureJson(bytes);
  if (tooDeepAt !== null) throw tooDeep(tooDeepAt);
  if (values > MAX_RECORD_VALUES) throw malformed(`The body may have at most ${MAX_RECORD_VALUES} values. Shorten it.`);
  return parseJsonText(decodeStart(bytes));
}

/** @throws AppError `malformed` with the parser's message */
export function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const where = cause instanceof Error ? cause.message : `${text.length} characters`;
    throw malformed(`The body is not valid JSON (${where}; it has ${text.length} characters).`, cause);
  }
}

/** Decodes the start of a body, which may have a byte order mark. */
export function decodeStart(bytes: Uint8Array): string {
  return decodeUtf8(bytes, startDecoder);
}

export function decodeUtf8(bytes: Uint8Array, decoder = middleDecoder): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw malformed('The body is not valid UTF-8. JSON is always sent as UTF-8.', cause);
  }
}

export function tooDeep(index: number): AppError {
  return malformed(`The body is nested deeper than ${MAX_JSON_DEPTH} levels at byte ${index}. Flatten it.`);
}

export function malformed(message: string, cause?: unknown): AppError {
  return new AppError('malformed', message, { cause });
}
