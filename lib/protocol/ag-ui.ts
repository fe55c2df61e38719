import type { EventType } from '@ag-ui/core';
import type { Attachment } from './attachments';
import type { CommandType, MessageDelivery, Sender, WakeRule } from './commands';
import type { Position } from './position';

/**
 * An AG-UI event as it stands in the event log. Only `type` is certain: ingest is lenient, so that an agent with a
 * newer vocabulary is stored whole and shown as far as it is understood.
 *
 * @see AG-UI 1.0.0, `@ag-ui/core`
 */
export interface AgUiEvent {
  type: `${EventType}` | (string & {});
  timestamp?: number;
  rawEvent?: unknown;
  metadata?: { interlude?: InterludeMetadata; [key: string]: unknown };
  /** Set on text, reasoning and tool events that a subagent produced: they belong to that task, not to the turn. */
  subagentRunId?: string;
  [field: string]: unknown;
}

/** An event with its time, as adapters and sources give it: no agent or session is named yet. */
export interface TimedEvent {
  /** Epoch milliseconds. */
  occurredAt: number;
  event: AgUiEvent;
}

/** What Interlude adds to an AG-UI event, under `metadata.interlude`. */
export interface InterludeMetadata {
  /** On RUN_STARTED: who the turn answers. */
  turn?: 'user' | 'between-run';
  /** On RUN_STARTED as far as known, on RUN_FINISHED / RUN_ERROR for certain: what woke the agent. */
  trigger?: TurnTrigger;
  /** On RUN_STARTED and RUN_FINISHED / RUN_ERROR: the user messages this turn answers. */
  userMessageIds?: string[];
  /** On RUN_FINISHED / RUN_ERROR: tasks whose end this turn was told of while it ran ("folded" notifications). */
  foldedTaskIds?: string[];
  /**
   * On a user message that carries the results of ended tasks to the agent, and on its `message:delivery` if it never got
   * there: these tasks, with their `Task.position`. Written by the server.
   */
  carries?: Pick<TurnTrigger, 'taskIds' | 'taskRunIds'> & { positions: string[] };
  /** On a content event: `delta` is the whole text so far. Replace, don't append. */
  whole?: true;
  /** The run of the task that `subagentRunId` names, where the agent re-uses task ids. */
  taskRunId?: string;
  /** On an assistant's text message (its START or its END): the messages it answers. */
  replyTo?: string[];
  /** On a user message: who wrote it. Without it, a person whose name is the event's `name`. */
  from?: Sender;
  /** On a user message that a person sent through Interlude. Only the server writes it: what an agent tells has none. */
  origin?: 'interlude';
  /** On a user message that the server queued for the agent. `message:delivery` says how it went on. */
  delivery?: 'queued';
  /** Beside `delivery`: no runner listened when it was queued, so that it is not on its way before it is `delivered`. */
  waits?: true;
  /**
   * On what is told of a task: the session whose runner told it, where that is not the task's own. Written by ingest,
   * which puts it where it belongs.
   */
  reportedBy?: string;
  /** Beside `reportedBy`: who said that it belongs here, where nothing proved it. */
  assignedBy?: string;
  /**
   * On what a MESSAGES_SNAPSHOT says that was not known, or otherwise: `turnId` is where it stands already, null if it
   * is new. `sameAs`: what the snapshot repeats under another id: `text <id>`, `reasoning <id>` or `tool <id>`.
   * Written by ingest.
   */
  ofSnapshot?: { turnId: string | null; sameAs?: string };
  /**
   * On a `request:opened` or `request:resolved` that follows from the event before it: `turnId` is the run that asks, null
   * if none is known. Written by ingest.
   */
  derived?: { turnId: string | null };
  /** On a `task:output`: the position of the task, in this session, that it is of. Written by ingest. */
  taskPosition?: Position;
  /** On a `request:opened`: the derived request whose place it takes. Written by ingest. */
  replaces?: string;
  /**
   * On what ingest itself writes about work that a status record lists, or does not list any more: nobody told it.
   */
  presumed?: true;
  /**
   * The event repeats something known, so it adds no line: a `session:ended` after a status record reported the end, the
   * start or end of a task, or the start of a tool call in a repeated run. Written by ingest.
   */
  again?: true;
  /** On a user message: what it carries besides its text. */
  attachments?: Attachment[];
  /** With `delivery`: the name its sender's browser gave it, by which that knows it again. */
  clientId?: string;
  /** On RUN_FINISHED / RUN_ERROR: the agent did not say that the turn ended; its silence, or what it did next, did. */
  inferred?: true;
  /** On a TOOL_CALL_RESULT: what the call changed in files, as its agent tells it. */
  edits?: FileEdit[];
  /** On an `interlude:removed`: which turns are not there any more. Written by the server. */
  removed?: RemovedTurns;
}

/** The oldest turns of a session, which retention has removed. */
export interface RemovedTurns {
  /** Every turn that began up to here. */
  upTo: Position;
  /** How many turns were removed so far, without those of kind `none`. */
  turns: number;
  /** The last message or call that was: a snapshot that repeats it tells nothing new up to there. */
  lastId?: string;
}

/** A change of a file, or of a part of it, as text. */
export interface FileEdit {
  path: string;
  /** Empty for what is new. */
  before: string;
  after: string;
}

/** An entry of `content.entries` of an ACTIVITY_SNAPSHOT whose `activityType` is `plan`. */
export interface PlanEntry {
  content: string;
  status: 'pending' | 'in_progress' | 'completed';
  priority?: string;
}

export interface TurnTrigger {
  /** `agent`: another one. `goal`: what the agent works towards by itself. */
  kind: 'task' | 'timer' | 'goal' | 'agent' | 'unknown';
  /** The tasks whose end woke the agent, in the order they ended. Empty unless `kind` is `task`. */
  taskIds: string[];
  /** The runs of those tasks, index by index, where the agent names them. */
  taskRunIds?: (string | null)[];
  /** For a timer: why the agent set it, in its own words. */
  reason?: string;
  /** For a timer: when the agent set it, epoch milliseconds. */
  setAt?: number;
  /** `interlude`: the agent is not told of such ends, so Interlude began the turn for it, as people asked. */
  wokenBy?: 'interlude';
  /**
   * Whose those tasks are, index by index, where some are another session's: null for the turn's own. The turn was told
   * of such a task, and not woken by it. Written by ingest.
   */
  ofSessionIds?: (string | null)[];
}

/** The names of the CUSTOM events Interlude understands. Others are stored and ignored. */
export const CUSTOM = {
  taskStarted: 'task:started',
  taskProgress: 'task:progress',
  taskUpdated: 'task:updated',
  taskCompleted: 'task:completed',
  /** What a task wrote. `value` is TaskOutputValue; where ingest has made one of many, `output` in it is a TaskOutput. */
  taskOutput: 'task:output',
  requestOpened: 'request:opened',
  requestResolved: 'request:resolved',
  /** The agent's process runs, again or for the first time: the session can be written to before its first turn. */
  sessionStarted: 'session:started',
  /** The agent's process ended. `value` is `{ reason, exitCode? }`. */
  sessionEnded: 'session:ended',
  /** What a producer had to drop. `value` is `{ count, reason }`. Written by ingest from a `lost` record. */
  lost: 'interlude:lost',
  /**
   * A record ingest could not take as it was. `value` is `{ seq, code, message }`; of those that came before the session
   * began, `{ count, message }`. Written by ingest.
   */
  quarantined: 'interlude:quarantined',
  /** Here was told of the end of another session's task. `value` is TaskElsewhereValue. Written by ingest. */
  taskElsewhere: 'interlude:task-elsewhere',
  /**
   * A turn of another session was told of the end of a task of this one. `value` is TaskToldValue. Written by ingest.
   */
  taskTold: 'interlude:task-told',
  /** A person said whose a parked task is. `value` is ParkedSettledValue. Written by the server. */
  parkedAssigned: 'interlude:parked-assigned',
  /** A person said that what was told of a parked task is of no use. `value` is ParkedSettledValue. */
  parkedDiscarded: 'interlude:parked-discarded',
  /**
   * The oldest turns were removed: `metadata.interlude.removed` says which, of which `value` is a copy,
   * `{ up_to, turns }`. Written by the server.
   */
  removed: 'interlude:removed',
  /** A task still runs whose turn was removed: from here on it stands here. `value` is `{ task_id, run_id? }`. */
  taskGoesOn: 'interlude:task-goes-on',
  /** Something worth a line in the transcript. `value` is `{ text, tone? }`. */
  notice: 'interlude:notice',
  /** How a message that was queued for the agent went on. `value` is MessageDeliveryValue. Written by the server. */
  messageDelivery: 'message:delivery',
  /** What people asked of the agent besides messages. `value` is CommandEventValue. Written by the server. */
  commandQueued: 'command:queued',
  commandDone: 'command:done',
  commandFailed: 'command:failed',
  /** A reply was waived: it is not owed any longer, though nobody replied. `value` is ObligationWaivedValue. */
  obligationWaived: 'obligation:waived',
  /** A person took a text for the reply to a message. `value` is ObligationAcceptedValue. Written by the server. */
  obligationAccepted: 'obligation:accepted',
  /** Nothing is heard of the session any more. `value` is RunnerAwayValue. Written by the server. */
  runnerAway: 'runner:away',
  /** The same runner is there again. `value` is `{ away_since, at_rest? }`. Written by the server. */
  runnerBack: 'runner:back',
} as const;

/**
 * `value` of the `task:*` events. snake_case because that is the wire agents already speak (Claude Code, Ambient);
 * every field but `task_id` may be missing.
 */
export interface TaskEventValue {
  task_id: string;
  run_id?: string | null;
  tool_use_id?: string | null;
  description?: string;
  /** `local_bash`, `local_agent`, or whatever the agent calls it. */
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

/** `value` of `task:output`: what the output file of a task holds from one of its places to another. */
export interface TaskOutputValue {
  task_id: string;
  run_id?: string | null;
  /** Without secrets. As a terminal would get it: escape sequences included. */
  text: string;
  /** Bytes of the file. By default it goes on from what was told last. */
  from?: number;
  to?: number;
  /** When the last of it was written, epoch milliseconds. By default when it was told. */
  written_at?: number;
  /** How many secrets were taken out. */
  redacted?: number;
  /** Nothing more comes. */
  ended?: true;
  /** Why the rest could not be read, as a sentence. */
  error?: string;
}

/** `value` of `interlude:task-elsewhere`. */
export interface TaskElsewhereValue {
  task_id: string;
  run_id?: string;
  /** Whose it is: there the end stands. */
  session_id: string;
  description?: string;
  status?: string;
  /** The end that is known is this session's own word of before, which has its line: this has none. */
  again?: true;
}

/** `value` of `interlude:task-told`. */
export interface TaskToldValue {
  task_id: string;
  run_id?: string;
  /** Where the turn is. */
  session_id: string;
  turn_id: string;
}

/**
 * `value` of `interlude:parked-assigned`, in the session it was assigned to and in the one that told of it, and of
 * `interlude:parked-discarded`.
 */
export interface ParkedSettledValue {
  task_id: string;
  run_id?: string;
  /** How many records. */
  count: number;
  /** Which session's runner told of it. */
  reported_by: string;
  /** In the session that told of it: to which one it was assigned. */
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
  /** What may be answered, where the agent offers more than yes and no. Of a permission only. */
  options?: RequestOption[];
  /** Until when the agent waits, on the same clock as `occurredAt`. */
  expires_at?: number;
  /**
   * By which an answer names this very request, and where it was opened. Written by the server, whatever the producer
   * said there; told again as it was while it is open, a request has those of its first telling.
   */
  digest?: string;
  opened_position?: Position;
}

/** One answer to a permission that an agent offers. A decision names it by `optionId`. */
export interface RequestOption {
  id: string;
  /** In the agent's words. */
  label: string;
  kind: 'allow' | 'deny';
  /** It holds for more than this once. */
  isLasting?: true;
}

/** `value` of `request:resolved`. `unknown` when the agent went on without saying how it was answered. */
export interface RequestResolvedValue {
  request_id: string;
  outcome: 'allowed' | 'denied' | 'answered' | 'expired' | 'cancelled' | 'unknown';
  message?: string;
}

/** `value` of `message:delivery`. `seen` follows from a turn that names the message and is not said by an event. */
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
  /** Of `permission.decision` and `question.answer`, with the digest of the request that was answered and where it was opened. */
  request_id?: string;
  digest?: string;
  opened_position?: Position;
  /** Of `task.stop` and `task.wake`. */
  task_id?: string;
  run_id?: string;
  /** Of `permission.decision`; `option_id` where it chose one of the answers that were offered. */
  behavior?: 'allow' | 'deny';
  option_id?: string;
  /** Of `task.stop` and `task.wake`: what the task is called. */
  description?: string;
  /** Of `wake-rule.set`. */
  when?: WakeRule;
}

/** `value` of `runner:away`. */
export interface RunnerAwayValue {
  /** When the runner was missed, and where in the server's order that stands. */
  since: number;
  since_position?: number;
  last_heard_at: number;
  /** The agent does not end with its runner. */
  agent_goes_on: boolean;
  /** The agent has no stream of commands, and has been silent for too long. */
  is_silent?: boolean;
  /** Nothing was under way: the transcript does not mention it. */
  at_rest?: boolean;
}

/** `value` of `obligation:accepted`. */
export interface ObligationAcceptedValue {
  message_id: string;
  /** The text that was taken for the answer, and the turn it stands in. */
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
  /** Who said so, where it was a person at the dashboard, and the name their browser gave the request. */
  by?: string;
  client_id?: string;
}
