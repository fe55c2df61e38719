import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { fieldsOf, parseJson, textOf } from '@interlude/protocol/fields';

/**
 * One message between Interlude and an agent: a line of a recording and the only input of an adapter. A live source
 * feeds its adapter the same frames it records, so replaying a recording gives the same events.
 */
export interface WireFrame {
  /** `in`: from the agent. `out`: from Interlude. */
  dir: 'in' | 'out';
  /** The agent's native format: a JSON-RPC frame, an SSE event, an HTTP request or response. */
  msg: unknown;
}

export interface EmittedEvent {
  sessionId: string;
  /** Epoch milliseconds. */
  occurredAt: number;
  event: AgUiEvent;
}

/** The end of the agent's process or connection. */
export interface WireEnd {
  /** Shown to people: `exited`, `terminated by signal SIGKILL`, `the connection broke`. */
  reason: string;
  exitCode?: number | null;
  /** For example `SIGKILL`. */
  signal?: string | null;
  /** True if the end was requested, so that open work is cancelled rather than failed. */
  isAsked?: boolean;
  /** Set if the sessions continue in another process or connection: a sentence that explains how. */
  goesOn?: string;
}

/**
 * Translates native messages to AG-UI events for one connection with any number of sessions. Pure: the caller passes
 * the time and `newRunId`.
 *
 * Ordering: events come in the order of the frames; frames between turns count too.
 * Failure: never throws. An unknown message becomes a RAW event, and all state is bounded.
 */
export interface WireAdapter {
  read(frame: WireFrame, now: number): EmittedEvent[];
  /** Time of the next timer, epoch milliseconds; null if none is set. */
  readonly dueAt: number | null;
  /** Fires the timers due by `now`. */
  elapsed(now: number): EmittedEvent[];
  /** Closes everything open. Frames of the next process or connection may follow. */
  ended(end: WireEnd, now: number): EmittedEvent[];
}

export interface WireAdapterOptions {
  /** Maps the agent's session id to the dashboard's; deterministic. */
  sessionOf: (nativeId: string) => string;
  newRunId: () => string;
  /**
   * True for the replay of a recording: the log does not hold the dashboard's own messages yet, so the adapter writes
   * them.
   */
  isReplay?: boolean;
}

/** Returns the earliest of several timers; null if none is set. */
export function earliest(times: Iterable<number | null>): number | null {
  const set = [...times].filter((time) => time !== null);
  return set.length === 0 ? null : Math.min(...set);
}

/** Unwraps an error message that the model's API sent as JSON; other texts stay. */
export function unwrapErrorMessage(text: string): string {
  if (!text.trimStart().startsWith('{')) return text;
  const { error, message } = fieldsOf(parseJson(text));
  return textOf(fieldsOf(error).message) ?? textOf(message) ?? text;
}

/** Sets an entry, and evicts the oldest one once the map holds more than `max`. */
export function setBounded<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, max: number): void {
  map.set(key, value);
  if (map.size > max) map.delete(map.keys().next().value as Key);
}
