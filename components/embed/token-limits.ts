import type { Me } from '@interlude/protocol/access';
import { API_ADDRESS } from '@interlude/protocol/version';

/** What the server says of an embed token to whoever carries it. */
export interface TokenLimits {
  /** The one origin that it was made for; null: any that may embed this server. */
  parentOrigin: string | null;
  /** Epoch milliseconds by the server's clock; null if that is not told. */
  expiresAt: number | null;
  mayAct: boolean;
}

export type Checked =
  | { kind: 'good'; limits: TokenLimits }
  /** Expired, revoked or never this server's. */
  | { kind: 'refused' }
  | { kind: 'away' };

const WITHIN_MS = 10_000;

/** Asks the server what a token is for. Never throws. */
export async function checkToken(token: string): Promise<Checked> {
  if (!isHeaderText(token)) return { kind: 'refused' };
  try {
    const answer = await fetch(`${API_ADDRESS}/me`, {
      credentials: 'omit',
      cache: 'no-store',
      headers: { accept: 'application/json', authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    if (answer.status === 401 || answer.status === 403) return { kind: 'refused' };
    if (!answer.ok) return { kind: 'away' };
    const me = (await answer.json()) as Me;
    // whatever else somebody hands to a frame may open more than the frame is for
    return me.kind === 'embed' ? { kind: 'good', limits: limitsOf(me) } : { kind: 'refused' };
  } catch {
    return { kind: 'away' };
  }
}

/** What can stand in a header: a token that can't would fail each request in a way that names it. */
function isHeaderText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

function limitsOf({ parentOrigin, expiresAt, role }: Me): TokenLimits {
  return { parentOrigin, expiresAt, mayAct: role === 'operator' };
}
