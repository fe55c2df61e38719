import type { NextConfig } from 'next';

/** On every response. Pages get their content policy, with a nonce, from proxy.ts. */
const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy':
    'camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), display-capture=(), browsing-topics=()',
};

/** On what is not a page: should a browser ever be made to show it, it can do nothing. */
const DATA_POLICY = { 'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; sandbox" };

const config: NextConfig = {
  // Type checking is `npm run typecheck`, with the same compiler the editor uses.
  typescript: { ignoreBuildErrors: true },
  poweredByHeader: false,
  // The title and the icon come with the head, for everybody: a browser that has to wait for them asks for /favicon.ico.
  htmlLimitedBots: /.*/,
  // No page uses Next's image service, which would work for anybody, without a sign-in.
  images: { unoptimized: true },
  // The native libSQL binding can't be bundled.
  serverExternalPackages: ['@libsql/client', 'libsql'],
  headers: async () => [
    { source: '/:path*', headers: headerList(SECURITY_HEADERS) },
    { source: '/(api|healthz|readyz|sign-in|sign-out)/:path*', headers: headerList(DATA_POLICY) },
  ],
};

function headerList(headers: Record<string, string>) {
  return Object.entries(headers).map(([key, value]) => ({ key, value }));
}

export default config;
