import { AppError } from '@/lib/protocol/errors';
import type { AccessSettings } from './access-settings';
import { authenticate, isSignedIn } from './authenticate';
import { sameSecret } from './digest';
import { checkHost } from './host';
import { nextPath } from './next-path';
import { clearedCookie, makeSession, sessionCookie } from './session-cookie';

/** The page that says how to sign in. `next` is where the visitor wanted to go, `reason` why the sign-in failed. */
export const SIGNED_OUT_PATH = '/signed-out';

/** Form bodies hold a token and a path; anything longer is not a sign-in. */
const MAX_FORM_BYTES = 16 * 1024;

/** `GET /sign-in?token=&next=`: the link that is printed at start. Goes on to `next`, signed in. */
export async function signIn(request: Request, settings: AccessSettings): Promise<Response> {
  checkHost(request, settings);
  const query = new URL(request.url).searchParams;
  const token = query.get('token');
  const next = nextPath(query.get('next'));
  if (token !== null) return enter(request, settings, token, next);
  return (await isSignedIn(request, settings)) ? goTo(next) : goTo(signedOutPath(next));
}

/** `POST /sign-in`: the same from a form, so that a token can be pasted. */
export async function signInByForm(request: Request, settings: AccessSettings): Promise<Response> {
  checkHost(request, settings);
  const form = new URLSearchParams(await shortText(request));
  return enter(request, settings, form.get('token')?.trim() ?? '', nextPath(form.get('next')));
}

/** `POST /sign-out`. */
export async function signOut(request: Request, settings: AccessSettings): Promise<Response> {
  await authenticate(request, settings);
  return goTo(SIGNED_OUT_PATH, { 'set-cookie': clearedCookie(isSecure(request)) });
}

export function signedOutPath(next: string, reason?: 'wrong-token'): string {
  const query = new URLSearchParams();
  if (reason !== undefined) query.set('reason', reason);
  if (next !== '/') query.set('next', next);
  return query.size === 0 ? SIGNED_OUT_PATH : `${SIGNED_OUT_PATH}?${query}`;
}

async function enter(request: Request, settings: AccessSettings, token: string, next: string): Promise<Response> {
  if (!sameSecret(token, settings.token)) return goTo(signedOutPath(next, 'wrong-token'));
  const session = await makeSession(settings.token, settings.now());
  return goTo(next, { 'set-cookie': sessionCookie(session, isSecure(request)) });
}

function goTo(path: string, headers: Record<string, string> = {}): Response {
  return new Response(null, { status: 303, headers: { location: path, 'cache-control': 'no-store', ...headers } });
}

/** Whether the browser reached us over TLS, be it through a proxy. A liar only hardens its own cookie. */
function isSecure(request: Request): boolean {
  const forwarded = request.headers.get('x-forwarded-proto')?.split(',')[0]?.trim();
  return (forwarded ?? new URL(request.url).protocol.replace(':', '')) === 'https';
}

/** The body, of which a stranger may not make us keep more than a form's worth. */
async function shortText(request: Request): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  try {
    for await (const chunk of request.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > MAX_FORM_BYTES) break;
      text += decoder.decode(chunk, { stream: true });
    }
  } catch (cause) {
    throw new AppError('malformed', 'The form ended before it was complete. Send it again.', { cause });
  }
  if (bytes > MAX_FORM_BYTES) throw new AppError('too_large', `A sign-in form has at most ${MAX_FORM_BYTES} bytes.`);
  return text + decoder.decode();
}
