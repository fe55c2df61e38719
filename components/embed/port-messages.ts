/** Counted up when a console that speaks the old messages would misread the new ones. docs/embedding.md has them all. */
export const EMBED_VERSION = 1;

export type EmbedTheme = 'light' | 'dark' | 'system';

/** Posted by the frame to whoever is around it, until that answers. There is nothing secret in it. */
export interface ReadyMessage {
  interlude: 'ready';
  version: typeof EMBED_VERSION;
  nonce: string;
}

/** The answer, with one end of a MessageChannel: everything else goes over that. */
export interface ConnectMessage {
  interlude: 'connect';
  /** Of the frame's `ready`. */
  nonce: string;
  theme?: EmbedTheme;
  /** Whether to tell how high the content is. */
  height?: boolean;
}

/** Why the frame asks for a token. */
export type TokenNeed = 'first' | 'expiring' | 'refused';

/** From the console, over the port. */
export type ConsoleMessage =
  | { type: 'token'; token: string }
  /** There is none now. The frame goes on with the one it has; another may follow unasked. */
  | { type: 'no-token'; reason: string }
  | { type: 'theme'; theme: EmbedTheme };

/** What a link in the frame leads to. */
export type EmbedPlace =
  | { fleet: true }
  | { session: string; anchor: string | null }
  | { agent: string }
  | { agentLogs: string; anchor: string | null };

export type EmbedState = 'connected' | 'signed-out' | 'error';

/** From the frame, over the port. */
export type FrameMessage =
  | { type: 'need-token'; why: TokenNeed }
  /** How high the content is, in CSS pixels. */
  | { type: 'height'; height: number }
  /** A link was followed. `path` is the dashboard's own page of it. What comes of it is the console's to decide. */
  | { type: 'navigate'; to: EmbedPlace; path: string }
  /** `message`: in words for the console's developer, where something is wrong. */
  | { type: 'state'; state: EmbedState; message: string | null };

/** @returns null if it is none: nothing that comes over the port is taken on trust */
export function consoleMessage(data: unknown): ConsoleMessage | null {
  const { type, token, reason, theme } = Object(data) as Record<string, unknown>;
  // what is no token is one that no server takes
  if (type === 'token') return { type, token: typeof token === 'string' ? token : '' };
  if (type === 'no-token') return { type, reason: typeof reason === 'string' ? reason : '' };
  if (type === 'theme' && isTheme(theme)) return { type, theme };
  return null;
}

export function isTheme(value: unknown): value is EmbedTheme {
  return value === 'light' || value === 'dark' || value === 'system';
}
