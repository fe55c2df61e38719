import * as z from 'zod';
import { type CommandType, type MessageDelivery, Sender, type WakeRule } from './commands';
import { Attachment, Position } from './field-schemas';

/** AG-UI events as Interlude stores and serves them. @see AG-UI 1.0.0, `@ag-ui/core` */

export const TurnTrigger = z
  .object({
    kind: z
      .enum(['task', 'timer', 'goal', 'agent', 'unknown'])
      .describe('`agent`: another agent. `goal`: a goal the agent pursues on its own.'),
    taskIds: z
      .array(z.string())
      .describe('The tasks whose end woke the agent, in the order they ended. Empty unless `kind` is `task`.'),
    taskRunIds: z
      .array(z.string().nullable())
      .optional()
      .describe('The runs of those tasks, index by index, if the agent names them.'),
    reason: z.string().optional().describe('For a timer: why the agent set it, in its own words.'),
    setAt: z.number().optional().describe('For a timer: when the agent set it, in epoch milliseconds.'),
    wokenBy: z
      .literal('interlude')
      .optional()
      .describe('`interlude`: Interlude started the turn by the session’s wake rule.'),
    ofSessionIds: z
      .array(z.string().nullable())
      .optional()
      .describe(
        'Owners of those tasks, index by index, if some belong to another session; null for the turn’s own. Such a task was reported in the turn but did not wake it. Written by ingest.',
      ),
  })
  .describe('The cause of a between-run turn.');
export type TurnTrigger = z.infer<typeof TurnTrigger>;

export const FileEdit = z
  .object({
    path: z.string(),
    before: z.string().describe('Empty for a new file or part.'),
    after: z.string(),
  })
  .describe('A change of a file, or of a part of it, as text.');
export type FileEdit = z.infer<typeof FileEdit>;

export const PlanEntry = z
  .object({
    content: z.string(),
    status: z.enum(['pending', 'in_progress', 'completed']),
    priority: z.string().optional(),
  })
  .describe('An entry of `content.entries` of an ACTIVITY_SNAPSHOT whose `activityType` is `plan`.');
export type PlanEntry = z.infer<typeof PlanEntry>;

export const RequestOption = z
  .object({
    id: z.string(),
    label: z.string().describe('In the agent’s words.'),
    kind: z.enum(['allow', 'deny']),
    isLasting: z.literal(true).optional().describe('The answer holds beyond this request.'),
  })
  .describe('An answer that the agent offers to a permission request. A decision names it by `optionId`.');
export type RequestOption = z.infer<typeof RequestOption>;

export const RemovedTurns = z
  .object({
    upTo: Position.describe('Every turn that started up to this position.'),
    turns: z.number().describe('Turns removed so far, except those of kind `none`.'),
    lastId: z
      .string()
      .optional()
      .describe('The last removed message or call. A snapshot that repeats it adds nothing up to there.'),
  })
  .describe('The oldest turns of a session, removed by retention.');
export type RemovedTurns = z.infer<typeof RemovedTurns>;

export const InterludeMetadata = z
  .object({
    turn: z.enum(['user', 'between-run']).optional().describe('On RUN_STARTED: the kind of turn.'),
    trigger: TurnTrigger.optional().describe(
      'What woke the agent: on RUN_STARTED as far as known, on RUN_FINISHED and RUN_ERROR for certain.',
    ),
    userMessageIds: z
      .array(z.string())
      .optional()
      .describe('On RUN_STARTED, RUN_FINISHED and RUN_ERROR: the user messages that this turn answers.'),
    foldedTaskIds: z
      .array(z.string())
      .optional()
      .describe('On RUN_FINISHED and RUN_ERROR: tasks whose end was reported to the agent during this turn.'),
    carries: TurnTrigger.pick({ taskIds: true, taskRunIds: true })
      .extend({ positions: z.array(z.string()) })
      .optional()
      .describe(
        'On a user message that carries results of ended tasks, and on its `message:delivery` if it never arrived: the tasks and their `Task.position`. Written by the server.',
      ),
    whole: z
      .literal(true)
      .optional()
      .describe('On a content event: `delta` is the whole text so far. Replace, don’t append.'),
    taskRunId: z
      .string()
      .optional()
      .describe('The run of the task that `subagentRunId` names, if the agent reuses task ids.'),
    replyTo: z
      .array(z.string())
      .optional()
      .describe('On an assistant’s text message (START or END): the messages it answers.'),
    from: Sender.optional().describe(
      'On a user message: its author. If absent, a person called by the event’s `name`.',
    ),
    origin: z
      .literal('interlude')
      .optional()
      .describe('On a user message that a person sent through Interlude. Written only by the server.'),
    delivery: z
      .literal('queued')
      .optional()
      .describe(
        'On a user message that the server queued for the agent. `message:delivery` events report its progress.',
      ),
    waits: z
      .literal(true)
      .optional()
      .describe(
        'With `delivery`: no runner was connected when the message was queued, so it is not on its way until `delivered`.',
      ),
    reportedBy: z
      .string()
      .optional()
      .describe(
        'On a task event: the session whose runner reported it, if that is not the task’s own. Written by ingest.',
      ),
    assignedBy: z
      .string()
      .optional()
      .describe('With `reportedBy`: who assigned the task to this session, if ownership was not proven.'),
    ofSnapshot: z
      .object({ turnId: z.string().nullable(), sameAs: z.string().optional() })
      .optional()
      .describe(
        'On a part of a MESSAGES_SNAPSHOT that is new or differs. `turnId`: the turn that already has it; null if new. `sameAs`: the part it repeats under another id, as `text <id>`, `reasoning <id>` or `tool <id>`. Written by ingest.',
      ),
    derived: z
      .object({ turnId: z.string().nullable() })
      .optional()
      .describe(
        'On a `request:opened` or `request:resolved` derived from the event before it. `turnId`: the run that asks; null if unknown. Written by ingest.',
      ),
    taskPosition: Position.optional().describe(
      'On a `task:output`: position of its task in this session. Written by ingest.',
    ),
    replaces: z
      .string()
      .optional()
      .describe('On a `request:opened`: the derived request it replaces. Written by ingest.'),
    presumed: z
      .literal(true)
      .optional()
      .describe('On an event that ingest derived from the work listed, or no longer listed, by a status record.'),
    again: z
      .literal(true)
      .optional()
      .describe(
        'The event repeats something known and adds no line: a `session:ended` after a status record reported it, the start or end of a task, or the start of a tool call in a repeated run. Written by ingest.',
      ),
    attachments: z.array(Attachment).optional().describe('On a user message: the files it carries.'),
    clientId: z.string().optional().describe('With `delivery`: the id that the sender’s browser chose.'),
    inferred: z
      .literal(true)
      .optional()
      .describe(
        'On RUN_FINISHED and RUN_ERROR: the end follows from the agent’s silence or next act; it did not report it.',
      ),
    edits: z
      .array(FileEdit)
      .optional()
      .describe('On a TOOL_CALL_RESULT: file changes of the call, as the agent reports them.'),
    removed: RemovedTurns.optional().describe('On an `interlude:removed`: the removed turns. Written by the server.'),
  })
  .describe('Interlude’s additions to an AG-UI event, under `metadata.interlude`.');
export type InterludeMetadata = z.infer<typeof InterludeMetadata>;

export const AgUiEvent = z
  .looseObject({
    type: z.string(),
    timestamp: z.number().optional(),
    rawEvent: z.unknown().optional(),
    metadata: z.looseObject({ interlude: InterludeMetadata.optional() }).optional(),
    subagentRunId: z
      .string()
      .optional()
      .describe(
        'On text, reasoning and tool events of a subagent: its task. They belong to that task, not to the turn.',
      ),
  })
  .describe(
    'An AG-UI event as stored in the event log. Only `type` is certain: ingest is lenient, so events of a newer vocabulary are stored whole and shown as far as they are understood.',
  );
export type AgUiEvent = z.infer<typeof AgUiEvent>;

/** An event with its time, as adapters and sources produce it, before an agent and session are named. */
export interface TimedEvent {
  /** Epoch milliseconds. */
  occurredAt: number;
  event: AgUiEvent;
}

export const TurnKind = z
  .enum(['user', 'between-run', 'none'])
  .describe(
    '`user` answers people. `between-run` was started by the agent itself. `none` holds events outside any turn.',
  );
export type TurnKind = z.infer<typeof TurnKind>;

export const ServedRun = z
  .object({
    turn: TurnKind.optional().describe(
      '`none`: the run is no turn of the session. It holds what lies outside of turns, or what is for this client alone.',
    ),
    turnId: z.string().optional(),
    continues: z.literal(true).optional().describe('The run continues a turn that started before.'),
    trigger: TurnTrigger.optional(),
    userMessageIds: z.array(z.string()).optional(),
  })
  .describe('On RUN_STARTED: the session’s turn that the run shows.');
export type ServedRun = z.infer<typeof ServedRun>;

export const ServedPart = InterludeMetadata.pick({
  attachments: true,
  clientId: true,
  delivery: true,
  from: true,
  replyTo: true,
}).describe('Interlude’s additions to a served message, thought or call.');
export type ServedPart = z.infer<typeof ServedPart>;

export const ServedEvent = z
  .looseObject({
    type: z.string(),
    timestamp: z.number().optional().describe('Epoch milliseconds.'),
    metadata: z.looseObject({ interlude: z.union([ServedRun, ServedPart]).optional() }).optional(),
    subagentRunId: z.string().optional().describe('Set on the words and acts of a subagent.'),
  })
  .describe(
    'An event as served to AG-UI clients: only the fields that its type defines. See `@ag-ui/core` 0.0.59 and 1.0.0.',
  );
export type ServedEvent = z.infer<typeof ServedEvent>;

/**
 * `value` of the `task:*` events, in snake_case as agents already send them (Claude Code, Ambient). Every field but
 * `task_id` may be absent.
 */
export interface TaskEventValue {
  task_id: string;
  run_id?: string | null;
  tool_use_id?: string | null;
  description?: string;
  /** `local_bash`, `local_agent`, or the agent's own word. */
  task_type?: string;
  subagent_type?: string;
  parent_task_id?: string | null;
  status?: string;
  summary?: string;
  output_file?: string | null;
  exit_code?: number | null;
  error?: string | null;
  usage?: { total_tokens?: number; tool_uses?: number; duration_ms?: number } | null;
  last_tool_name?: string;
  started_at?: number;
  ended_at?: number;
}

/** `value` of `task:output`: a byte range of the task's output file. */
export interface TaskOutputValue {
  task_id: string;
  run_id?: string | null;
  /** Redacted; as a terminal would receive it, with escape sequences. */
  text: string;
  /** Byte offsets. By default, the range continues the previous one. */
  from?: number;
  to?: number;
  /** Time of the last write in epoch milliseconds. By default, the time of the event. */
  written_at?: number;
  /** Removed secrets. */
  redacted?: number;
  /** True if no more output follows. */
  ended?: true;
  /** The reason why the rest could not be read, as a sentence. */
  error?: string;
}

/** `value` of `interlude:task-elsewhere`. */
export interface TaskElsewhereValue {
  task_id: string;
  run_id?: string;
  /** The task's own session, which shows its end. */
  session_id: string;
  description?: string;
  status?: string;
  /** True if this session already reported the end and shows it, so that this event adds no line. */
  again?: true;
}

/** `value` of `interlude:task-told`. */
export interface TaskToldValue {
  task_id: string;
  run_id?: string;
  /** The turn's session. */
  session_id: string;
  turn_id: string;
}

/**
 * `value` of `interlude:parked-assigned`, written to the new session and to the reporting one, and of
 * `interlude:parked-discarded`.
 */
export interface ParkedSettledValue {
  task_id: string;
  run_id?: string;
  /** Number of records. */
  count: number;
  /** The session whose runner reported the task. */
  reported_by: string;
  /** In the reporting session: the session it was assigned to. */
  session_id?: string;
  by: string;
  reason?: string;
}

/** `value` of `request:opened`: the agent waits for a person. */
export interface RequestOpenedValue {
  request_id: string;
  kind: 'permission' | 'question';
  tool_use_id?: string;
  tool_name?: string;
  title?: string;
  input?: unknown;
  /** For a permission: the offered answers, if more than yes and no. */
  options?: RequestOption[];
  /** Time at which the agent stops waiting, on the clock of `occurredAt`. */
  expires_at?: number;
  /**
   * Identify this request in an answer. Written by the server over anything the producer sent. A repetition of an open
   * request keeps the values of its first event.
   */
  digest?: string;
  opened_position?: string;
}

/** `value` of `request:resolved`. `unknown`: the agent continued without reporting the answer. */
export interface RequestResolvedValue {
  request_id: string;
  outcome: 'allowed' | 'denied' | 'answered' | 'expired' | 'cancelled' | 'unknown';
  message?: string;
}

/** `value` of `message:delivery`. `seen` has no event: it follows from a turn that names the message. */
export interface MessageDeliveryValue {
  message_id: string;
  delivery: Exclude<MessageDelivery, 'seen'>;
  reason?: string;
}

/** `value` of `command:queued`, `command:done` and `command:failed`. */
export interface CommandEventValue {
  command_id: string;
  type: CommandType;
  reason?: string;
  /** For `permission.decision` and `question.answer`: the answered request, its digest and where it was opened. */
  request_id?: string;
  digest?: string;
  opened_position?: string;
  /** For `task.stop` and `task.wake`. */
  task_id?: string;
  run_id?: string;
  /** For `permission.decision`; `option_id` if it chose an offered answer. */
  behavior?: 'allow' | 'deny';
  option_id?: string;
  /** For `task.stop` and `task.wake`: the task's name for people. */
  description?: string;
  /** For `wake-rule.set`. */
  when?: WakeRule;
}

/** `value` of `runner:away`. */
export interface RunnerAwayValue {
  /** Time at which the silence was noticed, and the server's position then. */
  since: number;
  since_position?: number;
  last_heard_at: number;
  /** True if the agent outlives its runner. */
  agent_goes_on: boolean;
  /** True if the agent has no command stream and has been silent for too long. */
  is_silent?: boolean;
  /** True if no work was open, so that the transcript does not mention the absence. */
  at_rest?: boolean;
}

/** `value` of `obligation:accepted`. */
export interface ObligationAcceptedValue {
  message_id: string;
  /** The text accepted as the reply, and its turn. */
  reply_message_id: string;
  turn_id: string;
  /** The beginning of the message. */
  about: string;
  by: string;
  client_id?: string;
}

/** `value` of `obligation:waived`. */
export interface ObligationWaivedValue {
  message_id: string;
  reason?: string;
  /** The beginning of the message. */
  about?: string;
  /** The person at the dashboard who waived it, and their browser's id for the request. */
  by?: string;
  client_id?: string;
}
