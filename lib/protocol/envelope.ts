import * as z from 'zod';
import type { AgUiEvent } from './ag-ui';
import { idSchema, Position, textUpTo, timeSchema } from './field-schemas';
import { MAX_ID_LENGTH, MAX_RECORDS_PER_REQUEST } from './limits';
import { LOG_LEVELS, REJECTION_CODES } from './record-vocabulary';

/** What a runner sends: `POST /events`. @see PROTOCOL.md, Ingest */

const base = { seq: z.number().int().min(1), agentId: idSchema, occurredAt: timeSchema };

/** Lenient: an agent with a newer vocabulary is stored whole. */
const eventSchema = z.looseObject({ type: textUpTo(128).min(1) });

export const eventRecordSchema = z.looseObject({
  ...base,
  kind: z.literal('event'),
  sessionId: idSchema,
  event: eventSchema,
});

/** The place in a log where its level changed, or where older lines were removed. */
export const logMarkerSchema = z.discriminatedUnion('kind', [
  z.looseObject({
    kind: z.literal('level'),
    level: z.enum(LOG_LEVELS),
    previous: z.enum(LOG_LEVELS),
    /** Who turned it: a person's or an agent's id, `control-port`, or `time-limit` where it went back by itself. */
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
    /** How many secrets were taken out of the message before it left the runner. */
    redacted: z.number().int().min(0).optional(),
    marker: logMarkerSchema.optional(),
    /** Read by `readInsight`, which takes what there is: no line is refused for what it tells beside its words. */
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

/** A durable outbox: `epoch` is the birth of its file, and `seq` is dense from 1 within it. */
export const producerSchema = z.looseObject({ id: idSchema, epoch: z.number().int().min(1) });
export type ProducerRef = { id: string; epoch: number };

/**
 * The request as a whole. Records are only counted here and must carry a `seq`; each is judged by itself, because one
 * bad record may not hold up those behind it.
 */
export const ingestRequestSchema = z.looseObject({
  producer: producerSchema,
  records: z.array(z.unknown()).min(1).max(MAX_RECORDS_PER_REQUEST),
});

/** What makes a record one, before it is judged. */
export const rawRecordSchema = z.looseObject({ seq: z.number().int().min(1) });

/** The outbox id under which the server itself writes; nobody else may use it. */
export const SERVER_PRODUCER_ID = 'interlude';

export const RejectionCode = z
  .enum(REJECTION_CODES)
  .describe(
    '`agent_of_another_token`: the sender’s token does not cover the agent. `reserved_name`: only the server writes events of this name. `task_of_no_session`, `task_of_several_sessions`: the task can’t be traced to one session, and the record is parked. `not_storable`: the database refuses the record.',
  );

export const IngestAnswer = z.object({
  ackedSeq: z.number().describe('Every record up to this one is on disk.'),
  accepted: z.number(),
  duplicates: z.number(),
  rejected: z
    .array(z.object({ seq: z.number(), code: RejectionCode, message: z.string() }))
    .describe('Records kept in quarantine instead of accepted. They are acknowledged: don’t send them again.'),
  position: Position,
});
export type IngestAnswer = z.infer<typeof IngestAnswer>;
