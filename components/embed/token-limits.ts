import { API_BASE } from '@/lib/protocol/version';

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
  try {
    const answer = await fetch(`${API_BASE}/embed-token`, {
      credentials: 'omit',
      cache: 'no-store',
      headers: { accept: 'application/json', authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    // a server that tells nothing of tokens limits none
    if (answer.status === 404) return { kind: 'good', limits: limitsOf({ mayAct: false }) };
    if (answer.status === 401 || answer.status === 403) return { kind: 'refused' };
    return answer.ok ? { kind: 'good', limits: limitsOf(await answer.json()) } : { kind: 'away' };
  } catch {
    return { kind: 'away' };
  }
}

function limitsOf(told: unknown): TokenLimits {
  const { parentOrigin, expiresAt, mayAct } = Object(told) as Record<string, unknown>;
  return {
    parentOrigin: typeof parentOrigin === 'string' ? parentOrigin : null,
    expiresAt: typeof expiresAt === 'number' ? expiresAt : null,
    mayAct: mayAct === true,
  };
}
