import type * as z from 'zod';
import {
  eventRecordSchema,
  type IngestRecord,
  logRecordSchema,
  lostRecordSchema,
  statusRecordSchema,
} from '@/lib/protocol/envelope';
import { idSchema } from '@/lib/protocol/field-schemas';
import { MAX_RECORD_BYTES, MAX_RECORD_VALUES } from '@/lib/protocol/limits';
import type { RejectionCode } from '@/lib/protocol/rejections';
import type { AgentFact } from './facts';
import { describeIssue, type RawRecord } from './parse-request';

export type Judgement =
  | { taken: true; record: IngestRecord | AgentFact }
  | {
      taken: false;
      seq: number;
      code: RejectionCode;
      message: string;
      agentId: string | null;
      sessionId: string | null;
    };

const SCHEMAS: Record<IngestRecord['kind'], z.ZodType> = {
  event: eventRecordSchema,
  log: logRecordSchema,
  status: statusRecordSchema,
  lost: lostRecordSchema,
};

/**
 * Whether a record can be taken as it is, by itself: what it says of a session is not looked at here.
 * @param mayBeLarge false when the whole request is within the limit of one record, which spares measuring it
 */
export function judgeRecord(raw: RawRecord, mayBeLarge: boolean): Judgement {
  if (mayBeLarge && byteLength(raw) > MAX_RECORD_BYTES) {
    return rejection(raw, 'record_too_large', `A record may hold ${MAX_RECORD_BYTES} bytes as JSON. Send it in parts.`);
  }
  const schema =
    typeof raw.kind === 'string' && Object.hasOwn(SCHEMAS, raw.kind)
      ? SCHEMAS[raw.kind as IngestRecord['kind']]
      : undefined;
  if (schema === undefined) {
    return rejection(raw, 'unknown_kind', `A record's kind is one of ${Object.keys(SCHEMAS).join(', ')}.`);
  }
  const parsed = schema.safeParse(raw);
  // Not what the schema makes of it: that leaves out `__proto__`, and says so to nobody.
  if (parsed.success) return { taken: true, record: withInsight(withComponent(raw as unknown as IngestRecord)) };
  return rejection(raw, 'invalid_record', describeIssue(parsed.error));
}

/** What becomes of one that holds more values than are read of a record. */
export function tooManyValues(raw: RawRecord): Judgement {
  return rejection(raw, 'record_too_large', `A record may hold ${MAX_RECORD_VALUES} values. Send it in parts.`);
}

/** A line of a log may leave out what it is of. */
function withComponent(record: IngestRecord): IngestRecord {
  if (record.kind !== 'log' || record.log.component !== undefined) return record;
  return { ...record, log: { ...record.log, component: '' } };
}

const FAILED_HOOK = /^hook:(.*)$/s;

/** A hook's FATAL line wants a person's look also where its runner knows nothing of insights. */
function withInsight(record: IngestRecord): IngestRecord {
  if (record.kind !== 'log' || record.log.level !== 'fatal' || record.log.insight !== undefined) return record;
  const hook = FAILED_HOOK.exec(record.log.component)?.[1];
  if (hook === undefined) return record;
  return { ...record, log: { ...record.log, insight: { signal: 'hook_fatal', source: hook.trim() || 'unknown' } } };
}

export function rejection(raw: RawRecord, code: RejectionCode, message: string): Judgement & { taken: false } {
  return { taken: false, seq: raw.seq, code, message, agentId: idIn(raw.agentId), sessionId: idIn(raw.sessionId) };
}

function idIn(value: unknown): string | null {
  const parsed = idSchema.safeParse(value);
  return parsed.success ? parsed.data : null;
}

function byteLength(raw: RawRecord): number {
  const text = JSON.stringify(raw);
  // a UTF-16 unit takes at most three bytes, and at least one
  if (text.length > MAX_RECORD_BYTES || text.length * 3 <= MAX_RECORD_BYTES) return text.length;
  return new TextEncoder().encode(text).byteLength;
}
