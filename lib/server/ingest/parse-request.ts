import { ingestRequestSchema, type ProducerRef, rawRecordSchema } from '@interlude/protocol/envelope';
import { AppError } from '@interlude/protocol/errors';
import type * as z from 'zod';
import type { Pace } from '@/db/next-turn';

/** A record before it is judged: only its `seq` is certain. */
export type RawRecord = { seq: number; [field: string]: unknown };

/**
 * The request as a whole. Its records are only counted: each is judged by itself later.
 * @throws AppError `malformed` that names the field, or the record after which one is missing
 */
export async function parseRequest(
  body: unknown,
  pace: Pace,
): Promise<{ producer: ProducerRef; records: RawRecord[] }> {
  const parsed = ingestRequestSchema.safeParse(body);
  if (!parsed.success) throw invalid(parsed.error);
  const { producer, records } = parsed.data;
  const raws = await pace.map(records, (record, index) => {
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

/**
 * Within a request, every record must be the next one or repeat an earlier one. A hole here is the sender's mistake and
 * no retry would fix it, unlike a request that arrives before the one it follows.
 */
function requireDense(records: RawRecord[]): void {
  let last = (records[0]?.seq ?? 1) - 1;
  for (const [index, { seq }] of records.entries()) {
    if (seq > last + 1) {
      throw new AppError(
        'malformed',
        `records[${index}].seq is ${seq}, but ${last + 1} must come first. Send them in order.`,
      );
    }
    last = Math.max(last, seq);
  }
}

/** The first thing that is wrong, with its path: `records[3].seq: …`. */
export function describeIssue(error: z.ZodError, at: PropertyKey[] = []): string {
  const issue = error.issues[0];
  if (issue === undefined) return 'Invalid input';
  const path = [...at, ...issue.path].map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return path === '' ? issue.message : `${path.replace(/^\./, '')}: ${issue.message}`;
}
