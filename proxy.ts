import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { AppError, withErrors } from '@interlude/protocol/errors';
import { type NextRequest, NextResponse } from 'next/server';
import { accessSettings } from '@/lib/server/access/access-settings';
import { contentPolicy, makeNonce } from '@/lib/server/access/content-policy';
import { embedOrigins } from '@/lib/server/access/embed-origins';
import { EMBED_HEADER, isEmbedPage } from '@/lib/server/access/embed-path';
import { checkHost } from '@/lib/server/access/host';
import { nextPath } from '@/lib/server/access/next-path';
import { pageRefusal } from '@/lib/server/access/page-refusal.mjs';
import { SIGNED_OUT_PATH, signedOutPath, wasSignedIn } from '@/lib/server/access/sign-in';
import { theServer } from '@/lib/server/process-server.mjs';

/**
 * Stands before every page: the server's name is checked, visitors without a sign-in are shown how to get one, and
 * each response gets a content policy with a nonce of its own, which Next puts on its scripts.
 *
 * Of the API's routes the server checks that itself (`createServer`), and Next would buffer their request bodies to pass by here.
 */
export const proxy = withErrors(async (request: NextRequest): Promise<Response> => {
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
  // Next's own services, such as the one for images, which no page uses.
  if (pathname.startsWith('/_next/')) throw new AppError('not_found', 'There is nothing at this address.');
  const isEmbed = isEmbedPage(pathname);
  if (!isEmbed && pathname !== SIGNED_OUT_PATH && (await theServer().visitor(request.headers)) === null) {
    const reason = wasSignedIn(request.headers) ? 'ended' : undefined;
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
