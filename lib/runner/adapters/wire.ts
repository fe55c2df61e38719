import type { AgUiEvent } from '@interlude/protocol/ag-ui';

/**
 * What passed between Interlude and an agent: the line of a recording, and all that an adapter is given. A live source
 * feeds its adapter exactly this, so a recording gives the same events as the run it was made of.
 */
export interface WireFrame {
  /** `in`: from the agent. `out`: what Interlude sent it. */
  dir: 'in' | 'out';
  /** A JSON-RPC frame, an SSE event, an HTTP request or answer: whatever the agent speaks. */
  msg: unknown;
}

/** An event with its time and the session it belongs to. */
export interface EmittedEvent {
  sessionId: string;
  /** Epoch milliseconds. */
  occurredAt: number;
  event: AgUiEvent;
}

/** How an agent's process, or the connection to it, ended. */
export interface WireEnd {
  /** For people: `exited`, `terminated by signal SIGKILL`, `the connection broke`. */
  reason: string;
  exitCode?: number | null;
  /** `SIGKILL` */
  signal?: string | null;
  /** Somebody ended it on purpose: what it was doing has not failed. */
  isAsked?: boolean;
  /** The sessions go on with another process or connection: what follows, in a sentence. Without it, they have ended. */
  goesOn?: string;
}

/**
 * Native messages → AG-UI events, for one connection with any number of sessions. Pure: the time is passed in, run ids
 * come from `newRunId`. It never throws, whatever is in a frame; what it does not understand comes out as RAW, and all
 * that it remembers has a bound.
 */
export interface WireAdapter {
  /** In the order in which the frames passed, between turns too. */
  read(frame: WireFrame, now: number): EmittedEvent[];
  /** When time alone will say something next (a turn whose end is only silence); null if nothing is due. */
  readonly dueAt: number | null;
  /** What time alone says by now. */
  elapsed(now: number): EmittedEvent[];
  /** The process or the connection is gone: what is open is closed. Frames of the next one may follow. */
  ended(end: WireEnd, now: number): EmittedEvent[];
}

export interface WireAdapterOptions {
  /** The dashboard's session for the agent's own id of one. The same id always gives the same session. */
  sessionOf: (nativeId: string) => string;
  newRunId: () => string;
  /** Of a recording: no log has the messages of its dashboard yet, so they are told as well. */
  isReplay?: boolean;
}
