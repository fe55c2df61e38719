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
