import * as z from 'zod';
import type { AgUiEvent } from './ag-ui';
import { idSchema, Position, textUpTo, timeSchema } from './field-schemas';
import { MAX_ID_LENGTH, MAX_RECORDS_PER_REQUEST } from './limits';
import { LOG_LEVELS, REJECTION_CODES } from './vocabulary';

/** Requests and responses of `POST /events`. @see PROTOCOL.md, Ingest */

const base = { seq: z.number().int().min(1), agentId: idSchema, occurredAt: timeSchema };

/** Lenient: events of a newer vocabulary are stored whole. */
const eventSchema = z.looseObject({ type: textUpTo(128).min(1) });

export const eventRecordSchema = z.looseObject({
  ...base,
  kind: z.literal('event'),
  sessionId: idSchema,
  event: eventSchema,
});

export const logMarkerSchema = z.discriminatedUnion('kind', [
  z.looseObject({
    kind: z.literal('level'),
    level: z.enum(LOG_LEVELS),
    previous: z.enum(LOG_LEVELS),
    /** Author of the change: the id of a person or agent, `control-port`, or `time-limit` for an automatic return. */
    by: textUpTo(MAX_ID_LENGTH).min(1),
  }),
  z.looseObject({ kind: z.literal('retention'), lines: z.number().int().min(1), bytes: z.number().int().min(0) }),
]);
export type LogMarker = z.infer<typeof logMarkerSchema>;

export const logRecordSchema = z.looseObject({
  ...base,
  kind: z.literal('log'),
  log: z.looseObject({
    level: z.enum(LOG_LEVELS),
    component: textUpTo(MAX_ID_LENGTH).default(''),
    message: z.string(),
    /** Secrets that the runner removed from the message. */
    redacted: z.number().int().min(0).optional(),
    marker: logMarkerSchema.optional(),
    /** Read leniently by `readInsight`: a malformed insight never rejects the line. */
    insight: z.unknown().optional(),
  }),
});

export const statusRecordSchema = z.looseObject({
  ...base,
  kind: z.literal('status'),
  sessionId: idSchema.optional(),
  status: z.record(z.string(), z.unknown()),
});

export const lostRecordSchema = z.looseObject({
  ...base,
  kind: z.literal('lost'),
  sessionId: idSchema.optional(),
  lost: z.looseObject({ count: z.number().int().min(1), reason: textUpTo(500).min(1) }),
});

export type EventRecord = z.infer<typeof eventRecordSchema> & { event: AgUiEvent };
export type LogRecord = z.infer<typeof logRecordSchema>;
export type StatusRecord = z.infer<typeof statusRecordSchema>;
export type LostRecord = z.infer<typeof lostRecordSchema>;
export type IngestRecord = EventRecord | LogRecord | StatusRecord | LostRecord;

/** A durable outbox. `epoch` is the birth time of its file; `seq` is dense from 1 within it. */
const producerSchema = z.looseObject({ id: idSchema, epoch: z.number().int().min(1) });
export type ProducerRef = { id: string; epoch: number };

/**
 * The whole request. Records are only counted here and validated one by one, because an invalid record must not block
 * the rest.
 */
export const ingestRequestSchema = z.looseObject({
  producer: producerSchema,
  records: z.array(z.unknown()).min(1).max(MAX_RECORDS_PER_REQUEST),
});

/** The minimum of a record before validation. */
export const rawRecordSchema = z.looseObject({ seq: z.number().int().min(1) });

/** Reserved outbox id of the server's own events. */
export const SERVER_PRODUCER_ID = 'interlude';

export const RejectionCode = z
  .enum(REJECTION_CODES)
  .describe(
    '`agent_of_another_token`: the sender’s token does not cover the agent. `reserved_name`: only the server writes events of this name. `task_of_no_session`, `task_of_several_sessions`: the task can’t be traced to one session, and the record is parked. `not_storable`: the database refuses the record.',
  );

export const IngestResponse = z.object({
  ackedSeq: z.number().describe('Every record up to this one is on disk.'),
  accepted: z.number(),
  duplicates: z.number(),
  rejected: z
    .array(z.object({ seq: z.number(), code: RejectionCode, message: z.string() }))
    .describe('Records kept in quarantine instead of accepted. They are acknowledged: don’t send them again.'),
  position: Position,
});
export type IngestResponse = z.infer<typeof IngestResponse>;
