/** How messages pass between the runner and an app-server: over its socket, or through the pipes of a child. */
export interface CodexLink {
  send(message: object): void;
  /** The server is asked to end, where it is a child; else the connection is. */
  close(): void;
  /** It is ended now. */
  kill(): void;
  readonly ended: Promise<LinkEnd>;
  /** Of a child. */
  readonly pid: number | null;
}

export interface LinkEnd {
  /** For people: `exited with code 1: …`, `the connection broke (ECONNRESET)`. */
  reason: string;
  exitCode: number | null;
  signal: string | null;
  /** There is no server any more, rather than no connection to it. */
  isServerGone: boolean;
}

export interface LinkListener {
  onMessage(message: unknown): void;
  /** For the agent's log. */
  onTrouble(message: string): void;
  onStderr(text: string): void;
}
