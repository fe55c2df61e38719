/** Incremented when a message changes incompatibly. docs/embedding.md lists the messages. */
export const EMBED_VERSION = 1;

export type EmbedTheme = 'light' | 'dark' | 'system';

/** Posted by the frame to its parent until the parent answers. Contains no secrets. */
export interface ReadyMessage {
  interlude: 'ready';
  version: typeof EMBED_VERSION;
  nonce: string;
}

/** The answer, with one end of a MessageChannel for all further messages. */
export interface ConnectMessage {
  interlude: 'connect';
  /** From the frame's `ready`. */
  nonce: string;
  theme?: EmbedTheme;
  /** True to get height reports. */
  height?: boolean;
}

/** Reason for a token request. */
export type TokenNeed = 'first' | 'expiring' | 'refused';

/** From the console, over the port. */
export type ConsoleMessage =
  | { type: 'token'; token: string }
  /** No token is available. The frame keeps its current one; a new one may follow at any time. */
  | { type: 'no-token'; reason: string }
  | { type: 'theme'; theme: EmbedTheme };

/** Target of a link in the frame. */
export type EmbedPlace =
  | { fleet: true }
  | { session: string; anchor: string | null }
  | { agent: string }
  | { agentLogs: string; anchor: string | null };

export type EmbedState = 'connected' | 'signed-out' | 'error';

/** From the frame, over the port. */
export type FrameMessage =
  | { type: 'need-token'; why: TokenNeed }
  /** Height of the content in CSS pixels. */
  | { type: 'height'; height: number }
  /** The user followed a link. `path`: the dashboard's page. The console decides what to do. */
  | { type: 'navigate'; to: EmbedPlace; path: string }
  /** `message`: a problem, for the console's developer. */
  | { type: 'state'; state: EmbedState; message: string | null };

/** Parses a message from the port. @returns null if it is invalid */
export function consoleMessage(data: unknown): ConsoleMessage | null {
  const { type, token, reason, theme } = Object(data) as Record<string, unknown>;
  // an invalid token becomes one that the server refuses
  if (type === 'token') return { type, token: typeof token === 'string' ? token : '' };
  if (type === 'no-token') return { type, reason: typeof reason === 'string' ? reason : '' };
  if (type === 'theme' && isTheme(theme)) return { type, theme };
  return null;
}

export function isTheme(value: unknown): value is EmbedTheme {
  return value === 'light' || value === 'dark' || value === 'system';
}
