/** On every response. Pages get their content policy, with a nonce, from proxy.ts. */
const EVERYWHERE = {
  'x-content-type-options': 'nosniff',
  // others are told nothing; to us it proves, where browsers say no more, that a form or a download is of our own pages
  'referrer-policy': 'same-origin',
  'permissions-policy':
    'camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), display-capture=(), browsing-topics=()',
};

/** On every response but those of embeds. */
export const SECURITY_HEADERS = {
  ...EVERYWHERE,
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/**
 * On pages that others frame: by whom, their content policy says. A console that isolates itself takes only frames that
 * do so too.
 */
export const EMBED_HEADERS = {
  ...EVERYWHERE,
  'cross-origin-resource-policy': 'cross-origin',
  'cross-origin-embedder-policy': 'require-corp',
};

/** On what is the same for everybody. A sandboxed frame has no origin: to it our own scripts and fonts are foreign. */
export const PUBLIC_HEADERS = {
  'cross-origin-resource-policy': 'cross-origin',
  'access-control-allow-origin': '*',
};

/** On what is not a page: should a browser ever be made to show it, it can do nothing. */
export const DATA_POLICY = { 'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox" };

/** On pages of text and a form, which are made without Next. Sandboxed, a form could not be sent. */
export const FORM_POLICY = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
};

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
  const isTls = forwardedOverTls(headers['x-forwarded-proto']) ?? 'encrypted' in socket;
  return isTls && STRICT.test((headers.host ?? '').toLowerCase().replace(/:\d*$/, ''));
}

/**
 * Returns true if the first proxy was reached over TLS, null without a proxy that says so.
 *
 * @param {string | string[] | null | undefined} forwarded the header `X-Forwarded-Proto`
 */
export function forwardedOverTls(forwarded) {
  return forwarded == null ? null : String(forwarded).split(',', 1)[0]?.trim() === 'https';
}
