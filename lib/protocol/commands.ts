import * as z from 'zod';
import { isHash, MAX_ATTACHMENT_NAME } from './attachments';
import { Attachment, idSchema, LogLevel, namedValues, Position, textUpTo, timeSchema } from './field-schemas';
import {
  MAX_INBOX_ID,
  MAX_MARKED,
  MAX_MESSAGE_ATTACHMENTS,
  MAX_MESSAGE_BYTES,
  MAX_MESSAGE_RESULTS,
  MAX_REASON_LENGTH,
  MAX_SESSION_NAME,
} from './limits';
import { isPosition } from './position';
import { LOG_LEVELS } from './vocabulary';

/**
 * Commands: what the server asks of a runner. @see PROTOCOL.md, Commands
 *
 * Ordering: a runner receives an agent's commands in the order they were queued.
 * Failure: a command may be delivered twice (its lease ran out, or the stream broke). The runner remembers the ids it
 * has accepted and acts once. A command that no runner accepts in time expires, and the transcript shows it.
 */

export const Sender = z
  .object({ kind: z.enum(['person', 'agent']), id: z.string() })
  .describe('Author of a message, who waits for its reply.');
export type Sender = z.infer<typeof Sender>;

/** The author of the operator's messages while everyone who signs in is the same person. */
export const OPERATOR: Sender = { kind: 'person', id: 'operator' };

export const WakeRule = z
  .enum(['never', 'command-ended'])
  .describe('When a runner wakes its agent on its own: `never`, or for each background command that ends.');
export type WakeRule = z.infer<typeof WakeRule>;

/** Names the answered request. A runner never applies an answer to another request with the same id. */
const answeredRequest = z.object({
  requestId: z.string(),
  digest: z.string().optional().describe('`digest` of the answered request, computed over `openedPosition`.'),
  openedPosition: Position.optional(),
});
export type AnsweredRequest = z.infer<typeof answeredRequest>;

const taskRun = { taskId: z.string(), runId: z.string().optional() };

/** The `body` of each command type. */
const bodies = {
  message: z.object({
    messageId: z.string().describe('The id of the command, too.'),
    text: z.string(),
    from: Sender,
    replyTo: z.string().optional(),
    attachments: z.array(Attachment).optional(),
    results: z
      .array(z.object({ ...taskRun, position: Position }))
      .optional()
      .describe('The ended tasks whose results the message carries.'),
  }),
  interrupt: z.object({ turnId: z.string().optional().describe('The turn to end, and no other.') }),
  'session.end': z
    .record(z.string(), z.never())
    .describe('Ends the session for good, with its agent and all its work.'),
  'task.stop': z.object({ ...taskRun, description: z.string().optional().describe('The task’s name for people.') }),
  'task.wake': z
    .object({ ...taskRun, description: z.string().optional() })
    .describe('Starts a turn with the result of an ended task, for an agent that receives no notification.'),
  'wake-rule.set': z.object({ when: WakeRule }).describe('Sets whether the runner wakes the agent on its own.'),
  'permission.decision': answeredRequest.extend({
    behavior: z.enum(['allow', 'deny']),
    message: z.string().optional(),
    updatedInput: z.record(z.string(), z.unknown()).optional().describe('Runs in place of the requested input.'),
    remember: z.boolean().optional().describe('Don’t ask again for this kind of request in this session.'),
    optionId: z.string().optional().describe('The chosen answer (`RequestOption.id`). `behavior` is its kind.'),
  }),
  'question.answer': answeredRequest.extend({
    answers: z
      .record(z.string(), z.union([z.string(), z.array(z.string())]))
      .describe('Question text or header → the chosen labels, or free text.'),
  }),
  'log-level.set': z.object({
    level: LogLevel.nullable().describe('Null: the runner’s own default.'),
    ttlSeconds: z
      .number()
      .optional()
      .describe('Seconds from when the command is sent until the runner returns to its default.'),
    expiresAt: z.number().optional().describe('The end of that time, on the server’s clock.'),
    by: z.string().describe('The person or credential that requested it.'),
    requestId: z.string().describe('Stable across retries and runner restarts, so that the level is set once.'),
  }),
};
export type CommandBodies = { [Type in keyof typeof bodies]: z.infer<(typeof bodies)[Type]> };

export const COMMAND_TYPES = Object.keys(bodies) as CommandType[];
export const CommandType = z.enum(Object.keys(bodies) as (keyof typeof bodies)[]);
export type CommandType = keyof typeof bodies;

export const CommandState = z
  .enum(['queued', 'delivered', 'done', 'failed', 'expired'])
  .describe(
    '`queued`: no runner has accepted it; it may be on its way. `delivered`: it is in the agent’s input. `done`: it had its effect; a message is done when a turn names it. `failed`, `expired`: it never will, and `reason` says why.',
  );
export type CommandState = z.infer<typeof CommandState>;

const command = <Type extends CommandType>(type: Type) =>
  z.object({
    id: z.string(),
    type: z.literal(type),
    sessionId: z.string().nullable().describe('Null if it concerns the whole agent.'),
    createdAt: z.number(),
    expiresAt: z.number(),
    body: bodies[type],
  });

export const Command = z
  .union(COMMAND_TYPES.map(command))
  .describe('Data of `event: command`. The frame’s id is the position at which the command was queued.');
/** A command as `event: command` carries it. The frame's id is the position at which the command was queued. */
export type Command = {
  [Type in CommandType]: {
    id: string;
    type: Type;
    sessionId: string | null;
    createdAt: number;
    expiresAt: number;
    body: CommandBodies[Type];
  };
}[CommandType];

const text = z
  .string()
  .refine((value) => value.trim() !== '', 'the text is empty')
  .refine(
    (value) =>
      value.length <= MAX_MESSAGE_BYTES &&
      (value.length * 3 <= MAX_MESSAGE_BYTES || new TextEncoder().encode(value).byteLength <= MAX_MESSAGE_BYTES),
    `the text may hold ${MAX_MESSAGE_BYTES} bytes as UTF-8`,
  );

const clientId = idSchema;

/** `POST /sessions/:id/messages` */
export const sendMessageSchema = z.strictObject({
  text,
  clientId,
  replyTo: idSchema.optional(),
  /** Attachments uploaded before, in the order in which the agent receives them. */
  attachments: z
    .array(
      z.strictObject({
        hash: z.string().refine(isHash, 'the SHA-256 of its bytes, in lower-case hex'),
        name: textUpTo(MAX_ATTACHMENT_NAME).min(1),
      }),
    )
    .max(MAX_MESSAGE_ATTACHMENTS)
    .optional(),
  /** Ended tasks whose results it carries, by default their newest runs. `position` is `Task.position`. */
  results: z
    .array(
      z.strictObject({
        taskId: idSchema,
        runId: idSchema.optional(),
        position: z.string().refine(isPosition, 'position is that of a task').optional(),
      }),
    )
    .min(1)
    .max(MAX_MESSAGE_RESULTS)
    .optional(),
});
export type SendMessage = z.infer<typeof sendMessageSchema>;

/** `POST /sessions/:id/interrupt`. The body may be empty. `turnId` defaults to the open turn. */
export const interruptSchema = z.strictObject({ turnId: z.string().min(1).optional(), clientId: clientId.optional() });
export type Interrupt = z.infer<typeof interruptSchema>;

/** `POST /sessions/:id/end`. The body may be empty. */
export const endSessionSchema = z.strictObject({ clientId: clientId.optional() });
export type EndSession = z.infer<typeof endSessionSchema>;

/** `POST /sessions/:id/tasks/:taskId/stop` and `…/wake`. The body may be empty. `runId` defaults to the newest run. */
export const taskRunSchema = z.strictObject({ runId: idSchema.optional(), clientId: clientId.optional() });
export type TaskRun = z.infer<typeof taskRunSchema>;

/** `PUT /sessions/:id/wake-rule` */
export const setWakeRuleSchema = z.strictObject({ when: WakeRule, clientId: clientId.optional() });
export type SetWakeRule = z.infer<typeof setWakeRuleSchema>;

const reason = textUpTo(MAX_REASON_LENGTH);

/** `RequestItem.digest` of the answered request. */
const digest = z.string().max(256).nullable().optional();

/** `POST /sessions/:id/requests/:requestId` for a permission. */
export const decidePermissionSchema = z.strictObject({
  behavior: z.enum(['allow', 'deny']),
  message: reason.optional(),
  updatedInput: namedValues(z.unknown()).optional(),
  remember: z.boolean().optional(),
  optionId: idSchema.optional(),
  digest,
  clientId: clientId.optional(),
});
export type DecidePermission = z.infer<typeof decidePermissionSchema>;

/** `POST /sessions/:id/requests/:requestId` for a question. */
export const answerQuestionSchema = z.strictObject({
  answers: namedValues(z.union([z.string(), z.array(z.string()).max(64)])).refine(
    (value) => typeof value !== 'object' || value === null || Object.keys(value).length > 0,
    'name at least one question',
  ),
  digest,
  clientId: clientId.optional(),
});
export type AnswerQuestion = z.infer<typeof answerQuestionSchema>;

/**
 * `PUT /agents/:id/log-level`. `level: null` is the runner's default. `ttlSeconds: null` means until changed, which is the
 * default except for debug: DEBUG_TTL_SECONDS.
 */
export const setLogLevelSchema = z
  .strictObject({
    level: z.enum(LOG_LEVELS).nullable(),
    ttlSeconds: z.number().int().min(1).max(604_800).nullable().optional(),
  })
  .refine(({ level, ttlSeconds }) => level !== null || ttlSeconds == null, 'the default has no time limit');
export type SetLogLevel = z.infer<typeof setLogLevelSchema>;

/** `POST /agents/:id/insights/seen` */
export const seeInsightsSchema = z.strictObject({
  upTo: z.string().refine(isPosition, 'upTo is the position of an insight'),
});
export type SeeInsights = z.infer<typeof seeInsightsSchema>;

/** `PUT /sessions/:id/arrangement`. An absent field stays unchanged. */
export const arrangeSchema = z.strictObject({
  /** Null or blank restores the title. */
  name: textUpTo(MAX_SESSION_NAME).nullable().optional(),
  pinned: z.boolean().optional(),
  archived: z.boolean().optional(),
  /** The `stateSince` that was seen; null marks it as unseen. */
  seenState: timeSchema.nullable().optional(),
});
export type Arrange = z.infer<typeof arrangeSchema>;

const inboxId = z.string().min(1).max(MAX_INBOX_ID);

/** `POST /inbox/marks` */
export const markInboxSchema = z
  .strictObject({
    /** Items as shown. One that recurred since stays unmarked. */
    items: z
      .array(
        z.strictObject({ id: inboxId, updatedPosition: z.string().refine(isPosition, 'the position of the item') }),
      )
      .min(1)
      .max(MAX_MARKED)
      .optional(),
    /** Instead of `items`: marks the items in their current state. */
    ids: z.array(inboxId).min(1).max(MAX_MARKED).optional(),
    mark: z.enum(['seen', 'unseen', 'snoozed', 'unsnoozed', 'claimed', 'released']),
    /** For `snoozed`: on the server's clock. */
    until: timeSchema.optional(),
    /** Ignored: sent by pages of earlier versions. */
    by: z.unknown().optional(),
    /** For `claimed`: also take over items claimed by others. */
    takeOver: z.boolean().optional(),
  })
  .refine(({ items, ids }) => (items === undefined) !== (ids === undefined), 'give either items or ids')
  .refine(({ mark, until }) => (mark === 'snoozed') === (until !== undefined), 'until belongs to snoozed');
export type MarkInbox = z.infer<typeof markInboxSchema>;

/** `POST /sessions/:id/obligations/:messageId/waive`. The body may be empty. */
export const waiveSchema = z.strictObject({ reason: reason.optional(), clientId: clientId.optional() });
export type Waive = z.infer<typeof waiveSchema>;

/** `POST /sessions/:id/obligations/:messageId/accept`. `candidateId`: the shown text to accept as the reply. */
export const acceptReplySchema = z.strictObject({
  candidateId: idSchema,
  /** Start of that text: an agent may reuse its id. */
  candidatePosition: z.string().refine(isPosition, 'the position of the candidate').optional(),
  clientId: clientId.optional(),
});
export type AcceptReply = z.infer<typeof acceptReplySchema>;

/** `POST /agents/:id/parked/:position/assign` */
export const assignParkedSchema = z.strictObject({ sessionId: idSchema, clientId: clientId.optional() });
export type AssignParked = z.infer<typeof assignParkedSchema>;

/** `POST /agents/:id/parked/:position/discard`. The body may be empty. */
export const discardParkedSchema = z.strictObject({ reason: reason.optional(), clientId: clientId.optional() });
export type DiscardParked = z.infer<typeof discardParkedSchema>;

/** `POST /agents/:id/commands/:commandId/ack`. `runner` and `startedAt` as on the stream: a fenced runner is refused. */
export const ackSchema = z.strictObject({
  state: z.enum(['delivered', 'done', 'failed']),
  reason: reason.optional(),
  /** For debugging only; not stored. */
  result: z.unknown().optional(),
  runner: idSchema.optional(),
  startedAt: timeSchema.optional(),
});
export type Ack = z.infer<typeof ackSchema>;

export const MessageDelivery = z.enum(['queued', 'delivered', 'seen', 'failed']);
export type MessageDelivery = z.infer<typeof MessageDelivery>;

export const Sending = z
  .union([
    z.object({ kind: z.literal('allowed'), reason: z.null() }),
    z.object({ kind: z.literal('warned'), reason: z.string() }).describe('It may never be read.'),
    z.object({ kind: z.literal('queued'), reason: z.string() }).describe('It waits until the agent accepts it.'),
    z.object({ kind: z.literal('refused'), reason: z.string() }).describe('It can’t be delivered.'),
  ])
  .describe('The handling of a message sent now. `reason` is a sentence.');
export type Sending = z.infer<typeof Sending>;

export const MessageResponse = z
  .object({
    messageId: z.string(),
    delivery: MessageDelivery.describe('Current delivery state.'),
    sending: Sending.describe('As the session was when the message was first sent.'),
  })
  .describe('202, and the same response for every repetition with the same `clientId`.');
export type MessageResponse = z.infer<typeof MessageResponse>;

export const CommandResponse = z.object({ commandId: z.string(), state: CommandState });
export type CommandResponse = z.infer<typeof CommandResponse>;

export const WakeRuleResponse = CommandResponse.extend({ when: WakeRule });
export type WakeRuleResponse = z.infer<typeof WakeRuleResponse>;

export const DesiredLogLevel = z
  .object({
    level: LogLevel.nullable().describe('Null: the runner’s default. Once it is confirmed, nothing is requested.'),
    requestedAt: z.number(),
    requestedBy: z.string(),
    expiresAt: z.number().nullable().describe('When the runner returns to its default; null: never.'),
    state: z
      .enum(['requested', 'confirmed', 'refused'])
      .describe(
        '`requested`: the runner has not answered yet. `confirmed`: it has changed the level, as its next status will show. `refused`: it can’t; `reason` says why.',
      ),
    reason: z.string().nullable(),
  })
  .describe('The log level requested of a runner.');
export type DesiredLogLevel = z.infer<typeof DesiredLogLevel>;

export const LogLevelResponse = CommandResponse.extend({ desired: DesiredLogLevel });
export type LogLevelResponse = z.infer<typeof LogLevelResponse>;

export const WaiveResponse = z.object({ messageId: z.string(), state: z.literal('waived') });
export type WaiveResponse = z.infer<typeof WaiveResponse>;

/** `PUT /agents/:id/retirement` */
export const retireSchema = z.strictObject({ retired: z.boolean() });
export type Retire = z.infer<typeof retireSchema>;

export const RetireResponse = z.object({
  retiredAt: z.number().nullable().describe('Null: not retired.'),
  position: Position,
});
export type RetireResponse = z.infer<typeof RetireResponse>;

export const AcceptReplyResponse = z.object({ messageId: z.string(), state: z.literal('answered') });
export type AcceptReplyResponse = z.infer<typeof AcceptReplyResponse>;

export const ParkedResponse = z
  .object({
    taskId: z.string(),
    state: z.enum(['assigned', 'discarded']),
    sessionId: z.string().nullable().describe('The session it was assigned to.'),
    settled: z.number().describe('Records settled: all that one session reported about one run of the task.'),
    left: z.number().describe('Records that exceeded one request and are still parked.'),
  })
  .describe('Response to assigning or discarding parked records.');
export type ParkedResponse = z.infer<typeof ParkedResponse>;

const upToDate = z.object({ position: Position }).describe('Everything before this position has been sent.');
export const CommandFrameData = z
  .object({
    hello: z.object({ resume: z.enum(['ok', 'gap']), position: Position }),
    command: Command as z.ZodType<Command>,
    'up-to-date': upToDate,
    fenced: z
      .object({ runnerId: z.string(), startedAt: z.number(), message: z.string() })
      .describe('A newer runner of the same agent has taken over: end, and report it.'),
    bye: z.object({ reason: z.enum(['planned', 'slow', 'shutdown', 'replaced', 'unauthorized']) }),
  })
  .describe('Frames of a runner’s command stream. Only `command` carries an id.');
export type CommandFrameData = z.infer<typeof CommandFrameData>;
