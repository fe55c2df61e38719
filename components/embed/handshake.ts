import { type ConnectMessage, type EmbedTheme, isTheme } from './port-messages';

/** Where this page is shown. */
export interface Surroundings {
  /** Whether anything is around it. */
  hasParent: boolean;
  /** Whether that stands in a frame itself. */
  isNested: boolean;
}

/** Why this page shows nothing where it is, in words for who builds the page around it; null if it may. */
export function placeFault({ hasParent, isNested }: Surroundings): string | null {
  if (!hasParent) {
    return 'This page is made to be shown in a frame of another one, and shows nothing by itself. Mount it with embed.js, or open the dashboard instead.';
  }
  if (isNested) {
    return 'This frame stands in a page that is a frame itself. Interlude connects only to the page at the top of the window: mount it there.';
  }
  return null;
}

interface Heard<Port> {
  source: unknown;
  origin: string;
  data: unknown;
  ports: readonly Port[];
}

export type Verdict<Port> =
  /** Not meant for this, or not from where an answer comes from. */
  | { kind: 'ignored' }
  | { kind: 'refused'; why: string }
  | { kind: 'connected'; port: Port; origin: string; theme: EmbedTheme | null; wantsHeight: boolean };

/**
 * Judges a message to this window as the answer to its `ready`.
 *
 * Ordering: from whom it is comes before what it says: what another frame or window posts changes nothing and is told nothing.
 */
export function judgeAnswer<Port>(
  { source, origin, data, ports }: Heard<Port>,
  expected: { parent: unknown; nonce: string; origins: readonly string[] },
): Verdict<Port> {
  if (source !== expected.parent) return { kind: 'ignored' };
  const answer = Object(data) as Partial<Record<keyof ConnectMessage, unknown>>;
  if (answer.interlude !== 'connect') return { kind: 'ignored' };
  if (origin === 'null') {
    return refused(
      'The page around this frame has no origin: it is sandboxed, or comes from a file or a data: address. Serve it from one of the origins that may embed this server.',
    );
  }
  if (!expected.origins.includes(origin)) {
    return refused(
      `The page around this frame is of ${origin}, which may not embed this server. An admin allows it by adding exactly that origin to INTERLUDE_EMBED_ORIGINS.`,
    );
  }
  // an answer to this frame as it was before it was loaded anew
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
