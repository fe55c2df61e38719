import * as z from 'zod';
import { TurnKind, TurnTrigger } from './ag-ui';
import { Position } from './field-schemas';

/** Turns, and what the turn projection remembers between two events. */

export const TurnState = z.enum(['open', 'finished', 'failed', 'interrupted']);
export type TurnState = z.infer<typeof TurnState>;

export const TurnHeader = z
  .object({
    id: z.string(),
    kind: TurnKind,
    state: TurnState,
    position: Position.describe('Start of the turn. Turns are ordered by it, and `before` accepts it.'),
    trigger: TurnTrigger.nullable(),
    userMessageIds: z.array(z.string()),
    parentTurnId: z.string().nullable(),
    startedAt: z.number(),
    endedAt: z.number().nullable(),
    error: z.object({ message: z.string(), code: z.string().nullable() }).nullable(),
    inferred: z
      .literal(true)
      .optional()
      .describe('The end follows from the agent’s silence or next act; the agent did not report it.'),
  })
  .describe('A turn without its items.');
export type TurnHeader = z.infer<typeof TurnHeader>;

export const FoldedType = z.enum(['TEXT_MESSAGE_CONTENT', 'TOOL_CALL_ARGS', 'REASONING_MESSAGE_CONTENT']);
export type FoldedType = z.infer<typeof FoldedType>;

export const Home = z
  .object({
    turnId: z.string().describe('`task:<id>` under a task.'),
    position: Position,
    role: z.string().nullable(),
    streaming: z
      .union([FoldedType, z.enum(['never', 'chunks'])])
      .nullable()
      .describe(
        'Set while deltas arrive; at the end they fold into one row. `never`: it started without a START event. `chunks`: part of it came in chunks, so its deltas are not the whole.',
      ),
  })
  .describe('An open message, thought, tool call or request: events about it go where it started.');
export type Home = z.infer<typeof Home>;

export const Unanswered = z
  .object({
    id: z.string(),
    runId: z.string().nullable(),
    turnId: z.string(),
    position: Position,
    queued: z
      .literal(true)
      .optional()
      .describe('For a message: the agent has not seen it yet, so a run answers it only by naming it.'),
    ofSessionId: z
      .string()
      .optional()
      .describe('For a task’s end: the other session that owns the task, whose end was reported here.'),
    isToldElsewhere: z
      .literal(true)
      .optional()
      .describe('For a task’s end: it was reported to another session’s agent and woke no turn here.'),
  })
  .describe('A user message or task end that no turn has answered yet.');
export type Unanswered = z.infer<typeof Unanswered>;

export const Chunked = z.object({ task: z.string().nullable(), kind: z.string(), id: z.string() });
export type Chunked = z.infer<typeof Chunked>;

export const TurnPlaces = z
  .object({
    openTurn: TurnHeader.nullable(),
    awaitsMessage: z
      .literal(true)
      .optional()
      .describe('The open turn has named no message and shown nothing yet: it answers the next user message in it.'),
    outside: TurnHeader.nullable().describe('The `none` turn that collects events until the next turn opens.'),
    homes: z.record(z.string(), Home),
    chunks: z
      .array(Chunked)
      .readonly()
      .optional()
      .describe('Streams in chunks, of the agent (`task` null) and of each subagent: later chunks need not name them.'),
    userMessages: z.array(Unanswered),
    endedTasks: z.array(Unanswered),
    finished: z
      .array(z.object({ id: z.string(), position: Position, messageId: z.string().nullable() }))
      .readonly()
      .optional()
      .describe('The newest finished turns, each with the last message it answers: their runs may be repeated.'),
    retold: z.string().optional().describe('The finished run that is being repeated: its events stay in its turn.'),
    tasksTold: z
      .array(z.object({ task: z.string(), phase: z.string(), position: Position }))
      .readonly()
      .optional()
      .describe('The newest start or end of the newest tasks: a repetition only updates the task’s card.'),
  })
  .describe(
    'Memory of the turn projection between two events. Its size depends on the open work, not on the length of the session.',
  );
export type TurnPlaces = z.infer<typeof TurnPlaces>;
