import type { TurnTrigger } from './ag-ui';
import type { Position } from './position';

export type TurnKind = 'user' | 'between-run' | 'none';
export type TurnState = 'open' | 'finished' | 'failed' | 'interrupted';

/** A turn without what happened in it. */
export interface TurnHeader {
  id: string;
  kind: TurnKind;
  state: TurnState;
  /** Where the turn began. Turns are ordered by it; it is also the cursor for `before`. */
  position: Position;
  trigger: TurnTrigger | null;
  userMessageIds: string[];
  parentTurnId: string | null;
  startedAt: number;
  endedAt: number | null;
  error: { message: string; code: string | null } | null;
  /** The agent did not say that it ended: its silence, or what it did next, did. Left out if it said so. */
  inferred?: true;
}

/** The header of what stands outside any turn; it is never open. */
export function outsideTurn(id: string, position: Position, startedAt: number): TurnHeader {
  return {
    id,
    kind: 'none',
    state: 'finished',
    position,
    trigger: null,
    userMessageIds: [],
    parentTurnId: null,
    startedAt,
    endedAt: startedAt,
    error: null,
  };
}

export type FoldedType = 'TEXT_MESSAGE_CONTENT' | 'TOOL_CALL_ARGS' | 'REASONING_MESSAGE_CONTENT';

/** An open message, reasoning, tool call or request: events about it go where it began. */
export interface Home {
  /** `task:<id>` under a task. */
  turnId: string;
  position: Position;
  role: string | null;
  /**
   * Set while deltas arrive: they fold into one row when it ends. `never`: it began without a START event. `chunks`: some
   * of it came in chunks, without which its deltas are not the whole.
   */
  streaming: FoldedType | 'never' | 'chunks' | null;
}

/** A user message or task end that no turn has answered yet. */
export interface Unanswered {
  id: string;
  runId: string | null;
  turnId: string;
  position: Position;
  /** Of a message: it waits for its agent, which has not seen it, so no run can mean it without naming it. */
  queued?: true;
  /** Of a task's end: it is another session's task, of which only was told here. */
  ofSessionId?: string;
  /** Of a task's end: another session's agent was told of it, which woke nobody here. */
  isToldElsewhere?: true;
}

export interface Chunked {
  task: string | null;
  kind: string;
  id: string;
}

/** What the projection remembers between two events. JSON, and bounded by what is open, not by what has happened. */
export interface TurnPlaces {
  openTurn: TurnHeader | null;
  /** The open turn has not said whom it answers and has shown nothing yet: a person's message in it is what it answers. */
  awaitsMessage?: true;
  /** The `none` turn that collects what happens outside any turn, until the next turn opens. */
  outside: TurnHeader | null;
  homes: Record<string, Home>;
  /** What is being told in chunks, of the agent itself (`task` null) and of each subagent: later chunks need not name it. */
  chunks?: readonly Chunked[];
  userMessages: Unanswered[];
  endedTasks: Unanswered[];
  /** The newest finished turns, each with the last message it answers: their runs may be repeated. */
  finished?: readonly { id: string; position: Position; messageId: string | null }[];
  /** The finished run that is being repeated: its events stand in its turn. */
  retold?: string;
  /** The newest start or end of the newest tasks: a repetition shows on the task's card alone. */
  tasksTold?: readonly { task: string; phase: string; position: Position }[];
}

export const NO_PLACES: TurnPlaces = { openTurn: null, outside: null, homes: {}, userMessages: [], endedTasks: [] };
