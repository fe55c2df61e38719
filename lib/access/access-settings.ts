import { AppError } from '@/lib/protocol/errors';

export const MIN_TOKEN_LENGTH = 16;

/** Who may come in, and under which names this server answers. */
export interface AccessSettings {
  /** The one secret of local mode: bearer token, and the key of the operator's cookie. */
  token: string;
  /** Host names besides the loopback ones, without a port, in lower case. */
  allowedHosts: readonly string[];
  /** Whether any IP address is a good Host: true when the server listens on all interfaces. */
  allowAddresses: boolean;
  now: () => number;
}

/**
 * What the environment says about who may come in. Start-up code puts the token file's content into INTERLUDE_TOKEN.
 *
 * @throws AppError `unavailable` when there is no token: a server without one must not answer anybody.
 */
export function accessSettings(env: Record<string, string | undefined>): AccessSettings {
  const token = env.INTERLUDE_TOKEN?.trim() ?? '';
  if (token.length < MIN_TOKEN_LENGTH) {
    throw new AppError(
      'unavailable',
      `INTERLUDE_TOKEN is ${token === '' ? 'not set' : 'too short'}. Start the dashboard with "npm start", or set INTERLUDE_TOKEN to at least ${MIN_TOKEN_LENGTH} characters.`,
    );
  }
  const host = (env.HOST ?? '').trim().toLowerCase();
  const everywhere = host === '0.0.0.0' || host === '::' || host === '[::]';
  const named = (env.INTERLUDE_ALLOWED_HOSTS ?? '').split(',').map((name) => name.trim().toLowerCase());
  return {
    token,
    allowedHosts: [...named, everywhere ? '' : host].filter((name) => name !== ''),
    allowAddresses: everywhere,
    now: Date.now,
  };
}
