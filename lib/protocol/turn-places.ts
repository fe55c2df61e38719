import type { Position } from './position';
import type { Turn } from './read-models';

export type TurnHeader = Omit<Turn, 'items' | 'omitted'>;

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
}

export const NO_PLACES: TurnPlaces = { openTurn: null, outside: null, homes: {}, userMessages: [], endedTasks: [] };
