/**
 * HTTP Strict Transport Security, on every answer to a request over TLS: for a year, browsers use TLS only for this host.
 * Subdomains are left out, because other services may run there.
 */
export const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' };

/**
 * A regular expression for hosts that may send the header. Browsers apply it to all ports of a name, so on loopback it
 * would cut off everything else that this machine serves.
 */
export const STRICT_HOST = '(?!(?:[^.]+\\.)*localhost$|127\\.|\\[).+';

const STRICT = new RegExp(`^${STRICT_HOST}$`);

/** @param {Pick<import('node:http').IncomingMessage, 'headers' | 'socket'>} request */
export function isStrict({ headers, socket }) {
  const forwarded = String(headers['x-forwarded-proto'] ?? '')
    .split(',', 1)[0]
    ?.trim();
  const isTls = forwarded === '' ? 'encrypted' in socket : forwarded === 'https';
  return isTls && STRICT.test((headers.host ?? '').toLowerCase().replace(/:\d*$/, ''));
}
