import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { AppError, withErrors } from '@interlude/protocol/errors';
import { type NextRequest, NextResponse } from 'next/server';
import { accessSettings } from '@/lib/server/access/access-settings';
import { EMBED_HEADER, embedOrigins, isEmbedPage } from '@/lib/server/access/embeds';
import { pageRefusal } from '@/lib/server/access/page-refusal.mjs';
import { checkHost } from '@/lib/server/access/request-origin';
import { hasSessionCookie, SIGNED_OUT_PATH, signedOutPath } from '@/lib/server/access/sign-in';
import { nextPath } from '@/lib/server/access/sign-in-pages';
import { theServer } from '@/lib/server/process-server.mjs';

/**
 * Runs before every page: checks the host name, redirects visitors without a sign-in, and sets a content policy whose
 * nonce Next adds to its scripts.
 *
 * API routes do their own checks (`createServer`); passing here, Next would buffer their bodies.
 */
export const proxy = withErrors(async (request: NextRequest): Promise<Response> => {
  theServer().checkSettings();
  const settings = accessSettings(process.env);
  checkHost(request, settings);
  const { pathname, search } = request.nextUrl;
  const isAction = request.headers.has('next-action');
  const refusal = pageRefusal({ method: request.method, url: `${pathname}${search}`, isAction });
  if (refusal !== null) {
    const { status, code, message, headers } = refusal;
    return Response.json(
      { error: { code, message } },
      { status, headers: { 'cache-control': 'no-store', ...headers } },
    );
  }
  // Next's own services, such as the image service, which no page uses
  if (pathname.startsWith('/_next/')) throw new AppError('not_found', 'There is nothing at this address.');
  const isEmbed = isEmbedPage(pathname);
  if (!isEmbed && pathname !== SIGNED_OUT_PATH && (await theServer().visitor(request.headers)) === null) {
    const reason = hasSessionCookie(request.headers) ? 'ended' : undefined;
    const notice = new URL(withBasePath(signedOutPath(nextPath(`${pathname}${search}`), reason)), request.url);
    return NextResponse.redirect(notice, { headers: { 'cache-control': 'no-store' } });
  }
  const nonce = makeNonce();
  const framedBy = isEmbed ? embedOrigins(process.env) : [];
  const content = contentPolicy(nonce, process.env.NODE_ENV === 'development', framedBy);
  const headers = new Headers(request.headers);
  headers.set('x-nonce', nonce);
  if (isEmbed) headers.set(EMBED_HEADER, '1');
  else headers.delete(EMBED_HEADER);
  headers.set('content-security-policy', content);
  const response = NextResponse.next({ request: { headers } });
  response.headers.set('content-security-policy', content);
  return response;
});

export const config = {
  matcher: [
    '/',
    '/((?!api(?:/|$)|_next/static/|sign-in(?:/|$)|sign-out$|healthz$|readyz$|metrics$|favicon\\.ico$|icon\\.svg$|embed\\.js$).*)',
  ],
};

/**
 * Content policy of a page. Agents' text is hostile: if any got past the renderer, it could run no inline script,
 * contact no other host, and use no frame or form.
 *
 * @param nonce base64, fresh for every response
 * @param framedBy origins that may frame the page; only embeds have any
 * @param isDevelopment Next's development server evaluates code and uses a WebSocket
 */
function contentPolicy(nonce: string, isDevelopment: boolean, framedBy: readonly string[] = []): string {
  return [
    "default-src 'self'",
    `script-src 'self' 'nonce-${nonce}' 'strict-dynamic'${isDevelopment ? " 'unsafe-eval'" : ''}`,
    `style-src 'self' ${isDevelopment ? "'unsafe-inline'" : `'nonce-${nonce}'`}`,
    // measured heights and offsets are style attributes, which can load nothing under this policy
    "style-src-attr 'unsafe-inline'",
    // `blob:` shows files that the person attaches, before they are sent
    "img-src 'self' data: blob:",
    "font-src 'self'",
    `connect-src 'self'${isDevelopment ? ' ws:' : ''}`,
    "worker-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    `frame-ancestors ${framedBy.length === 0 ? "'none'" : framedBy.join(' ')}`,
  ].join('; ');
}

function makeNonce(): string {
  return btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))));
}
