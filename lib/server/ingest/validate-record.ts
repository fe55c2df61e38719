import {
  eventRecordSchema,
  type IngestRecord,
  logRecordSchema,
  lostRecordSchema,
  statusRecordSchema,
} from '@interlude/protocol/envelope';
import { idSchema } from '@interlude/protocol/field-schemas';
import { MAX_RECORD_BYTES, MAX_RECORD_VALUES } from '@interlude/protocol/limits';
import { utf8Length } from '@interlude/protocol/text';
import type { RejectionCode } from '@interlude/protocol/vocabulary';
import type * as z from 'zod';
import type { AgentFact } from './facts';
import { describeIssue, type RawRecord } from './parse-request';

export type Validation =
  | { isValid: true; record: IngestRecord | AgentFact }
  | {
      isValid: false;
      seq: number;
      code: RejectionCode;
      message: string;
      agentId: string | null;
      sessionId: string | null;
    };

export interface ValidatedRecord {
  raw: RawRecord;
  validation: Validation;
}

/** The agent and the session that a record names. */
export function namesOf(validation: Validation): { agentId: string | null; sessionId?: unknown } {
  return validation.isValid ? validation.record : validation;
}

const SCHEMAS: Record<IngestRecord['kind'], z.ZodType> = {
  event: eventRecordSchema,
  log: logRecordSchema,
  status: statusRecordSchema,
  lost: lostRecordSchema,
};

/**
 * Validates a record on its own, regardless of the session that it names.
 * @param mayBeLarge false if the whole request is within the limit of one record, which saves measuring the record
 */
export function validateRecord(raw: RawRecord, mayBeLarge: boolean): Validation {
  if (mayBeLarge && isTooLarge(raw)) {
    return rejection(raw, 'record_too_large', `A record may have at most ${MAX_RECORD_BYTES} bytes as JSON. Split it.`);
  }
  const schema =
    typeof raw.kind === 'string' && Object.hasOwn(SCHEMAS, raw.kind)
      ? SCHEMAS[raw.kind as IngestRecord['kind']]
      : undefined;
  if (schema === undefined) {
    return rejection(raw, 'unknown_kind', `A record's kind is one of ${Object.keys(SCHEMAS).join(', ')}.`);
  }
  const parsed = schema.safeParse(raw);
  // The parsed value would silently drop `__proto__`.
  if (parsed.success) return { isValid: true, record: withInsight(withComponent(raw as unknown as IngestRecord)) };
  return rejection(raw, 'invalid_record', describeIssue(parsed.error));
}

export function tooManyValues(raw: RawRecord): Validation {
  return rejection(raw, 'record_too_large', `A record may have at most ${MAX_RECORD_VALUES} values. Split it.`);
}

/** `component` is optional on the wire. */
function withComponent(record: IngestRecord): IngestRecord {
  if (record.kind !== 'log' || record.log.component !== undefined) return record;
  return { ...record, log: { ...record.log, component: '' } };
}

const FAILED_HOOK = /^hook:(.*)$/s;

/** A hook's FATAL line counts as a failure even if the runner sends no insights. */
function withInsight(record: IngestRecord): IngestRecord {
  if (record.kind !== 'log' || record.log.level !== 'fatal' || record.log.insight !== undefined) return record;
  const hook = FAILED_HOOK.exec(record.log.component)?.[1];
  if (hook === undefined) return record;
  return { ...record, log: { ...record.log, insight: { signal: 'hook_fatal', source: hook.trim() || 'unknown' } } };
}

export function rejection(raw: RawRecord, code: RejectionCode, message: string): Validation & { isValid: false } {
  return { isValid: false, seq: raw.seq, code, message, agentId: idIn(raw.agentId), sessionId: idIn(raw.sessionId) };
}

function idIn(value: unknown): string | null {
  return idSchema.safeParse(value).data ?? null;
}

function isTooLarge(raw: RawRecord): boolean {
  const text = JSON.stringify(raw);
  // a UTF-16 unit takes one to three bytes
  if (text.length > MAX_RECORD_BYTES || text.length * 3 <= MAX_RECORD_BYTES) return text.length > MAX_RECORD_BYTES;
  return utf8Length(text) > MAX_RECORD_BYTES;
}
