/** On every response. Pages get their content policy, with a nonce, from proxy.ts. */
export const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy':
    'camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), display-capture=(), browsing-topics=()',
};

/** On what is not a page: should a browser ever be made to show it, it can do nothing. */
export const DATA_POLICY = { 'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox" };
