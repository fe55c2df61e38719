import type { Position } from '@interlude/protocol/position';
import type { Awaited } from './awaited-answer';
import type { ClientParts } from './client-parts';
import type { Asked } from './interrupts';
import type { StrictStream } from './strict-stream';
import type { TaskActivities } from './task-activity';

/** What a client waits for, and what it hears besides. */
export interface CourseOptions extends Awaited {
  stream: StrictStream;
  parts: ClientParts;
  tasks: TaskActivities;
  /** Which run the client asked for: the one that answers it has this id. */
  runId: string;
  /** Runs that answer nobody are told too: `while-tasks-run` until nothing is under way, `always` until it is bounded. */
  follows: 'no' | 'while-tasks-run' | 'always';
  /** The turn that is open where the log is read from; null if its beginning is read. */
  openTurnId: string | null;
  /** What the agent waits for as of `asOf`, and what of it this client has answered. */
  pending: readonly Asked[];
  answered: readonly string[];
  /** As of which position tasks and requests are known: what stands before it in the log changes neither. */
  asOf: Position;
  /** Up to where the log tells only messages, thoughts and calls, as far as the client does not have them. */
  quietUpTo: Position;
  /** The agent does not tell turns: what it says is the answer. */
  isTurnless: boolean;
  /** Nobody listens for the agent. */
  isAway: boolean;
  /** Told at the beginning of the client's run. */
  says: readonly { name: string; value: unknown }[];
}
