/** Headers of every response. Pages receive their content policy, with a nonce, from proxy.ts. */
const EVERYWHERE = {
  'x-content-type-options': 'nosniff',
  // hides paths from other sites; without Sec-Fetch-Site our own Referer proves that a form or download is same-origin
  'referrer-policy': 'same-origin',
  'permissions-policy':
    'camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), display-capture=(), browsing-topics=()',
};

/** Headers of every response except embeds. */
export const SECURITY_HEADERS = {
  ...EVERYWHERE,
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/**
 * Headers of embed pages, whose content policy names the allowed parents. A cross-origin-isolated parent only accepts
 * frames with these headers.
 */
export const EMBED_HEADERS = {
  ...EVERYWHERE,
  'cross-origin-resource-policy': 'cross-origin',
  'cross-origin-embedder-policy': 'require-corp',
};

/**
 * Headers of public files. A sandboxed frame has an opaque origin, so our own scripts and fonts are cross-origin to it.
 */
export const PUBLIC_HEADERS = {
  'cross-origin-resource-policy': 'cross-origin',
  'access-control-allow-origin': '*',
};

/** Policy of every response except pages: nothing runs or loads even if a browser renders the response. */
export const DATA_POLICY = { 'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox" };

/** Headers of text pages with a form, which Next doesn't render. A sandboxed page could not submit the form. */
export const FORM_POLICY = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
};

/**
 * HTTP Strict Transport Security, on every response over TLS: browsers use only TLS for this host for a year. Excludes
 * subdomains, where other services may run.
 */
export const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' };

/**
 * Hosts that may send the header. Browsers apply it to all ports of a name, so on loopback it would break every other
 * local server.
 */
export const STRICT_HOST = '(?!(?:[^.]+\\.)*localhost$|127\\.|\\[).+';

const STRICT = new RegExp(`^${STRICT_HOST}$`);

/** @param {Pick<import('node:http').IncomingMessage, 'headers' | 'socket'>} request */
export function isStrict({ headers, socket }) {
  const isTls = forwardedOverTls(headers['x-forwarded-proto']) ?? 'encrypted' in socket;
  return isTls && STRICT.test((headers.host ?? '').toLowerCase().replace(/:\d*$/, ''));
}

/**
 * True if the first proxy was reached over TLS; null without the header.
 *
 * @param {string | string[] | null | undefined} forwarded `X-Forwarded-Proto`
 */
export function forwardedOverTls(forwarded) {
  return forwarded == null ? null : String(forwarded).split(',', 1)[0]?.trim() === 'https';
}
