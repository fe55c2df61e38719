import * as z from 'zod';
import { type Attachment, isHash, MAX_ATTACHMENT_NAME } from './attachments';
import { idSchema, textUpTo, timeSchema } from './field-schemas';
import {
  MAX_INBOX_ID,
  MAX_MARKED,
  MAX_MESSAGE_ATTACHMENTS,
  MAX_MESSAGE_BYTES,
  MAX_MESSAGE_RESULTS,
  MAX_REASON_LENGTH,
  MAX_SESSION_NAME,
} from './limits';
import { type DesiredLogLevel, LOG_LEVELS, type LogLevel } from './log-levels';
import { namedValues } from './named-values';
import { isPosition, type Position } from './position';
import type { Sending } from './sending';

/**
 * What the server asks of a runner. @see PROTOCOL.md, Commands
 *
 * Ordering: a runner is sent an agent's commands in the order they were queued.
 * Failure: a command may be delivered twice (its lease ran out, the stream broke off) and is acted on once, because
 * the runner remembers the ids it has taken. One that nobody took in time expires, and the transcript says so.
 */

/** Who sent a message, and so to whom a reply is owed. */
export interface Sender {
  kind: 'person' | 'agent';
  id: string;
}

/** The operator's own messages, while everybody who signs in is the same person. */
export const OPERATOR: Sender = { kind: 'person', id: 'operator' };

/** Which request an answer is meant for. A runner never gives it to another with the same id. */
export interface AnsweredRequest {
  requestId: string;
  /** `requestDigest` of what was answered, over `openedPosition`. */
  digest?: string;
  openedPosition?: Position;
}

/** `value` of each type is the command's `body`. A message's `messageId` is the command's id too. */
export interface CommandBodies {
  message: {
    messageId: string;
    text: string;
    from: Sender;
    replyTo?: string;
    attachments?: Attachment[];
    /** The ended tasks whose results it carries. */
    results?: { taskId: string; runId?: string; position: Position }[];
  };
  /** `turnId`: the turn it ends, and no other. */
  interrupt: { turnId?: string };
  /** Ends the session for good, whatever runs in it: its agent ends, and a runner of one session with it. */
  'session.end': Record<string, never>;
  /** `description`: what people call the task. */
  'task.stop': { taskId: string; runId?: string; description?: string };
  /** Begins a turn with the result of a task that has ended, for an agent that is not told of it by itself. */
  'task.wake': { taskId: string; runId?: string; description?: string };
  /** Whether the runner does that by itself, from now on, for each background command of the session that ends. */
  'wake-rule.set': { when: WakeRule };
  'permission.decision': AnsweredRequest & {
    behavior: 'allow' | 'deny';
    message?: string;
    /** Runs in place of what was asked: what was answered is what runs. */
    updatedInput?: Record<string, unknown>;
    /** Do not ask again for this kind of thing in this session. */
    remember?: boolean;
    /** Which of the answers that the agent offers (`RequestOption.id`); `behavior` is its kind. */
    optionId?: string;
  };
  /** Question text or header → the chosen labels, or free text. */
  'question.answer': AnsweredRequest & { answers: Record<string, string | string[]> };
  'log-level.set': {
    /** Null: back to the runner's own default. */
    level: LogLevel | null;
    /** After this many seconds the runner goes back to its default. Counted from when the command is sent. */
    ttlSeconds?: number;
    /** When that is, on the server's clock. */
    expiresAt?: number;
    /** Who asked for it. */
    by: string;
    /** The same whenever it is asked again, also by the runner's next process, so that it is done once. */
    requestId: string;
  };
}

export const WAKE_RULES = ['never', 'command-ended'] as const;
/** When a runner wakes its agent without being asked each time. */
export type WakeRule = (typeof WAKE_RULES)[number];

export const COMMAND_TYPES = [
  'message',
  'interrupt',
  'session.end',
  'task.stop',
  'task.wake',
  'wake-rule.set',
  'permission.decision',
  'question.answer',
  'log-level.set',
] as const satisfies (keyof CommandBodies)[];
export type CommandType = (typeof COMMAND_TYPES)[number];

/**
 * `queued`: nobody has taken it (it may be on its way). `delivered`: it is in the agent's input. `done`: it had its
 * effect; a message is done when a turn names it. `failed`, `expired`: it never will, and `reason` says why.
 */
export const COMMAND_STATES = ['queued', 'delivered', 'done', 'failed', 'expired'] as const;
export type CommandState = (typeof COMMAND_STATES)[number];

/** A command as `event: command` carries it; the frame's id is the position at which it was queued. */
export type Command = {
  [Type in CommandType]: {
    id: string;
    type: Type;
    /** Null for what concerns the agent as a whole. */
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
  /** What was sent to `/sessions/:id/attachments`, in the order in which the agent is given it. */
  attachments: z
    .array(
      z.strictObject({
        hash: z.string().refine(isHash, 'the SHA-256 of its bytes, in lower-case hex'),
        name: textUpTo(MAX_ATTACHMENT_NAME).min(1),
      }),
    )
    .max(MAX_MESSAGE_ATTACHMENTS)
    .optional(),
  /**
   * The ended tasks whose results it carries to the agent. Without `runId` and `position` (of the task, where neither id
   * tells runs apart) the newest run is meant.
   */
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

/** `POST /sessions/:id/interrupt`. The body may be empty; without `turnId` the turn that is open then is meant. */
export const interruptSchema = z.strictObject({ turnId: z.string().min(1).optional(), clientId: clientId.optional() });
export type Interrupt = z.infer<typeof interruptSchema>;

/** `POST /sessions/:id/end`. The body may be empty. */
export const endSessionSchema = z.strictObject({ clientId: clientId.optional() });
export type EndSession = z.infer<typeof endSessionSchema>;

/** `POST /sessions/:id/tasks/:taskId/stop`. The body may be empty; without `runId` the newest run is meant. */
export const stopTaskSchema = z.strictObject({ runId: idSchema.optional(), clientId: clientId.optional() });
export type StopTask = z.infer<typeof stopTaskSchema>;

/** `POST /sessions/:id/tasks/:taskId/wake`. The body may be empty; without `runId` the newest run is meant. */
export const wakeTaskSchema = z.strictObject({ runId: idSchema.optional(), clientId: clientId.optional() });
export type WakeTask = z.infer<typeof wakeTaskSchema>;

/** `PUT /sessions/:id/wake-rule` */
export const setWakeRuleSchema = z.strictObject({ when: z.enum(WAKE_RULES), clientId: clientId.optional() });
export type SetWakeRule = z.infer<typeof setWakeRuleSchema>;

const reason = textUpTo(MAX_REASON_LENGTH);

/** The `digest` of the RequestItem that was answered; null if that has none. */
const digest = z.string().max(256).nullable().optional();

/** `POST /sessions/:id/requests/:requestId`, where the request is a permission. */
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

/** `POST /sessions/:id/requests/:requestId`, where the request is a question. */
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
 * `PUT /agents/:id/log-level`. A `level` of null is the runner's default. `ttlSeconds` of null means until it is
 * changed; left out, DEBUG_TTL_SECONDS for debug and until it is changed for every other level.
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

/** `PUT /sessions/:id/arrangement`: what is left out stays as it is. */
export const arrangeSchema = z.strictObject({
  /** Null or blank: its title again. */
  name: textUpTo(MAX_SESSION_NAME).nullable().optional(),
  pinned: z.boolean().optional(),
  archived: z.boolean().optional(),
  /** The `stateSince` that was looked at; null: it has not been seen after all. */
  seenState: timeSchema.nullable().optional(),
});
export type Arrange = z.infer<typeof arrangeSchema>;

const inboxId = z.string().min(1).max(MAX_INBOX_ID);

/** `POST /inbox/marks`: what people make of what needs them. */
export const markInboxSchema = z
  .strictObject({
    /** As they were shown: one that came up again since is left as it is. */
    items: z
      .array(z.strictObject({ id: inboxId, updatedPosition: z.string().refine(isPosition, 'it is that of the item') }))
      .min(1)
      .max(MAX_MARKED)
      .optional(),
    /** In place of `items`: as they are when this arrives. */
    ids: z.array(inboxId).min(1).max(MAX_MARKED).optional(),
    mark: z.enum(['seen', 'unseen', 'snoozed', 'unsnoozed', 'claimed', 'released']),
    /** Of `snoozed`: until when, on the server's clock. */
    until: timeSchema.optional(),
    /** Ignored: pages of earlier versions named who claims. The server knows the sender. */
    by: z.unknown().optional(),
    /** Of `claimed`: also what somebody else has. */
    takeOver: z.boolean().optional(),
  })
  .refine(({ items, ids }) => (items === undefined) !== (ids === undefined), 'say either items or ids')
  .refine(({ mark, until }) => (mark === 'snoozed') === (until !== undefined), 'until belongs to snoozed');
export type MarkInbox = z.infer<typeof markInboxSchema>;

/** `POST /sessions/:id/obligations/:messageId/waive`. The body may be empty. */
export const waiveSchema = z.strictObject({ reason: reason.optional(), clientId: clientId.optional() });
export type Waive = z.infer<typeof waiveSchema>;

/** `POST /sessions/:id/obligations/:messageId/accept`. `candidateId`: the text that was shown, and is taken for the answer. */
export const acceptReplySchema = z.strictObject({
  candidateId: idSchema,
  /** Where it began: an agent may say something else under the same id. */
  candidatePosition: z.string().refine(isPosition, 'it is that of the candidate').optional(),
  clientId: clientId.optional(),
});
export type AcceptReply = z.infer<typeof acceptReplySchema>;

/** `POST /agents/:id/parked/:position/assign` */
export const assignParkedSchema = z.strictObject({ sessionId: idSchema, clientId: clientId.optional() });
export type AssignParked = z.infer<typeof assignParkedSchema>;

/** `POST /agents/:id/parked/:position/discard`. The body may be empty. */
export const discardParkedSchema = z.strictObject({ reason: reason.optional(), clientId: clientId.optional() });
export type DiscardParked = z.infer<typeof discardParkedSchema>;

/**
 * `POST /agents/:id/commands/:commandId/ack`. `runner` and `startedAt` as on the stream: a fenced runner is refused.
 */
export const ackSchema = z.strictObject({
  state: z.enum(['delivered', 'done', 'failed']),
  reason: reason.optional(),
  /** For people who watch the wire; not kept. */
  result: z.unknown().optional(),
  runner: idSchema.optional(),
  startedAt: timeSchema.optional(),
});
export type Ack = z.infer<typeof ackSchema>;

/** 202, and the same again for the same `clientId`. */
export interface MessageAnswer {
  messageId: string;
  /** How far it has come by now. */
  delivery: MessageDelivery;
  /** What becomes of it, as the session stood when it was first sent. */
  sending: Sending;
}
export interface CommandAnswer {
  commandId: string;
  state: CommandState;
}

/** 202 of `PUT /sessions/:id/wake-rule` */
export interface WakeRuleAnswer extends CommandAnswer {
  when: WakeRule;
}

/** 202 of `PUT /agents/:id/log-level` */
export interface LogLevelAnswer extends CommandAnswer {
  desired: DesiredLogLevel;
}

export interface WaiveAnswer {
  messageId: string;
  state: 'waived';
}

/** `PUT /agents/:id/retirement` */
export const retireSchema = z.strictObject({ retired: z.boolean() });
export type Retire = z.infer<typeof retireSchema>;

/** 200 of `PUT /agents/:id/retirement` */
export interface RetireAnswer {
  /** Null: it is not retired. */
  retiredAt: number | null;
  position: Position;
}

/** 200 of `POST /sessions/:id/obligations/:messageId/accept` */
export interface AcceptReplyAnswer {
  messageId: string;
  state: 'answered';
}

/** 200 of `POST /agents/:id/parked/:position/assign` and `…/discard` */
export interface ParkedAnswer {
  taskId: string;
  state: 'assigned' | 'discarded';
  /** Where it was assigned to. */
  sessionId: string | null;
  /** How many records went: all that one session told of one run of the task. */
  settled: number;
  /** How many of those were too much for one request and are still parked. */
  left: number;
}

export type MessageDelivery = 'queued' | 'delivered' | 'seen' | 'failed';

/** What a runner's stream of commands sends. Only `command` carries an id. */
export interface CommandFrameData {
  hello: { resume: 'ok' | 'gap'; position: Position };
  command: Command;
  'up-to-date': { position: Position };
  /** A newer runner of the same agent has taken over: end, and say so. */
  fenced: { runnerId: string; startedAt: number; message: string };
  bye: { reason: 'planned' | 'slow' | 'shutdown' | 'replaced' | 'unauthorized' };
}
