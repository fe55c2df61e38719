/**
 * HTTP Strict Transport Security, on every answer to a request that came over TLS: for a year, browsers don't ask this
 * host without it. Not for subdomains: the host may be a company's own domain, with others' services beneath it.
 */
export const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' };

/**
 * Names for which it may be said, as a regular expression. Browsers remember it for all ports of a name, so it would cut
 * off whatever else this machine serves on loopback.
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
