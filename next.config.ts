import type { NextConfig } from 'next';
import type { RouteHas } from 'next/dist/lib/load-custom-routes';
import { buildFolder } from './lib/launch/paths.mjs';
import { basePathSetting } from './lib/protocol/base-path.mjs';
import {
  DATA_POLICY,
  EMBED_HEADERS,
  FORM_POLICY,
  PUBLIC_HEADERS,
  SECURITY_HEADERS,
  STRICT_HOST,
  STRICT_TRANSPORT,
} from './lib/server/access/response-headers.mjs';

/** `npm start` builds with one that stands for any: see lib/launch/build.mjs. */
const basePath = basePathSetting(process.env.BASE_PATH_OF_BUILD ?? process.env.INTERLUDE_BASE_PATH);

/** As in lib/server/access/embeds.ts. */
const EMBEDS = 'embed/(?:sessions/[^/]+|agents/[^/]+/logs|fleet)';

/** As `isStrict` in lib/server/access/response-headers.mjs. */
const OVER_TLS: RouteHas[] = [
  { type: 'header', key: 'x-forwarded-proto', value: 'https(?:,.*)?' },
  { type: 'host', value: STRICT_HOST },
];

const config: NextConfig = {
  basePath,
  // read by lib/protocol/base-path.mjs
  env: { INTERLUDE_BASE_PATH: basePath },
  distDir: buildFolder(basePath),
  // Type checking is `npm run typecheck`, with the same compiler the editor uses.
  typescript: { ignoreBuildErrors: true },
  poweredByHeader: false,
  // The title and the icon come with the head, for everybody: a browser that has to wait for them asks for /favicon.ico.
  htmlLimitedBots: /.*/,
  // No page uses Next's image service, which would work for anybody, without a sign-in.
  images: { unoptimized: true },
  // The native libSQL binding can't be bundled.
  serverExternalPackages: ['@libsql/client', 'libsql'],
  // A browser that finds no icon in the head, as between two pages, asks for this one.
  rewrites: async () => [{ source: '/favicon.ico', destination: '/icon.svg' }],
  headers: async () => [
    { source: '/', has: OVER_TLS, headers: headerList(STRICT_TRANSPORT) },
    { source: '/:path*', has: OVER_TLS, headers: headerList(STRICT_TRANSPORT) },
    { source: '/', headers: headerList(SECURITY_HEADERS) },
    { source: `/((?!${EMBEDS}$).*)`, headers: headerList(SECURITY_HEADERS) },
    { source: `/(${EMBEDS})`, headers: headerList(EMBED_HEADERS) },
    { source: '/_next/static/:path*', headers: headerList(PUBLIC_HEADERS) },
    { source: '/embed.js', headers: headerList(PUBLIC_HEADERS) },
    { source: '/(api|healthz|readyz|metrics)/:path*', headers: headerList(DATA_POLICY) },
    { source: '/(sign-in|sign-out)/:path*', headers: headerList(FORM_POLICY) },
  ],
};

function headerList(headers: Record<string, string>) {
  return Object.entries(headers).map(([key, value]) => ({ key, value }));
}

export default config;
