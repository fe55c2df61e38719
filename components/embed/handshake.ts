import { type ConnectMessage, type EmbedTheme, isTheme } from './port-messages';

/** The frames around this page. */
interface Framing {
  /** True if the page is in a frame. */
  hasParent: boolean;
  /** True if the embedding page is in a frame, too. */
  isNested: boolean;
}

/** Reason this page can't be shown here, for the developer of the embedding page; null if it can. */
export function placeFault({ hasParent, isNested }: Framing): string | null {
  if (!hasParent) {
    return 'This page only works in a frame. Mount it with embed.js, or open the dashboard instead.';
  }
  if (isNested) {
    return 'This frame is inside another frame. Interlude connects only to the top-level page: mount the frame there.';
  }
  return null;
}

interface Message<Port> {
  source: unknown;
  origin: string;
  data: unknown;
  ports: readonly Port[];
}

export type AnswerResult<Port> =
  /** An unrelated message, or one from another window. */
  | { kind: 'ignored' }
  | { kind: 'refused'; why: string }
  | { kind: 'connected'; port: Port; origin: string; theme: EmbedTheme | null; wantsHeight: boolean };

/**
 * Validates a message to this window as the answer to its `ready`.
 *
 * Ordering: checks the source before the content, so other windows can neither change nor read anything.
 */
export function validateAnswer<Port>(
  { source, origin, data, ports }: Message<Port>,
  expected: { parent: unknown; nonce: string; origins: readonly string[] },
): AnswerResult<Port> {
  if (source !== expected.parent) return { kind: 'ignored' };
  const answer = Object(data) as Partial<Record<keyof ConnectMessage, unknown>>;
  if (answer.interlude !== 'connect') return { kind: 'ignored' };
  if (origin === 'null') {
    return refused(
      'The page around this frame has no origin: it is sandboxed, or it is a file: or data: page. Serve it from an origin that may embed this server.',
    );
  }
  if (!expected.origins.includes(origin)) {
    return refused(
      `The origin ${origin} may not embed this server. Ask an admin to add it to INTERLUDE_EMBED_ORIGINS.`,
    );
  }
  // an answer from before a reload of this frame
  if (answer.nonce !== expected.nonce) return { kind: 'ignored' };
  const [port] = ports;
  if (port === undefined) {
    return refused(
      'The page around this frame answered without a port. Transfer one end of a MessageChannel with "connect", as embed.js does.',
    );
  }
  const theme = isTheme(answer.theme) ? answer.theme : null;
  return { kind: 'connected', port, origin, theme, wantsHeight: answer.height === true };
}

function refused(why: string): { kind: 'refused'; why: string } {
  return { kind: 'refused', why };
}
