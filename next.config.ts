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

/** `npm start` builds with a placeholder: see lib/launch/build.mjs. */
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
  // `npm run typecheck` checks types, with the editor's compiler
  typescript: { ignoreBuildErrors: true },
  poweredByHeader: false,
  // send title and icon in the initial head: a browser that waits for them requests /favicon.ico
  htmlLimitedBots: /.*/,
  // no page uses the image service, which needs no sign-in
  images: { unoptimized: true },
  // native binding
  serverExternalPackages: ['@libsql/client', 'libsql'],
  // requested by browsers between two pages, before they have seen an icon
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
