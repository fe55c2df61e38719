import { placed } from '@interlude/protocol/base-path.mjs';
import { AppError } from '@interlude/protocol/errors';
import { FORM_POLICY } from './response-headers.mjs';

export interface PlainLink {
  href: string;
  text: string;
}

/** One button, which posts to a path of ours. */
export interface PlainForm {
  action: string;
  fields: Readonly<Record<string, string>>;
  text: string;
}

/** A page outside of the dashboard: text, and one link or button, without a script or a style of ours. */
export function plainPage(title: string, text: string, way: PlainLink | PlainForm, status: number): Response {
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · Interlude</title>
<main>
<h1>${escaped(title)}</h1>
<p>${escaped(text)}</p>
${'href' in way ? linkOf(way) : formOf(way)}
</main>
</html>
`;
  return new Response(body, {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', ...FORM_POLICY },
  });
}

function linkOf({ href, text }: PlainLink): string {
  return `<p><a href="${escaped(href)}">${escaped(text)}</a></p>`;
}

function formOf({ action, fields, text }: PlainForm): string {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">\n`,
  );
  return `<form method="post" action="${escaped(placed(action))}">\n${inputs.join('')}<button>${escaped(text)}</button>\n</form>`;
}

const SIGNS: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => SIGNS[sign] ?? sign);
}

/**
 * The body of a form, of which a stranger may not make us keep more than its worth.
 *
 * @param what the form is for, in its refusal
 * @throws AppError `malformed`, `too_large`
 */
export async function readForm(
  request: Request,
  what: 'sign-in' | 'sign-out' | 'logout',
  maxBytes: number,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  try {
    for await (const chunk of request.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) break;
      text += decoder.decode(chunk, { stream: true });
    }
  } catch (cause) {
    throw new AppError('malformed', 'The form ended before it was complete. Send it again.', { cause });
  }
  if (bytes > maxBytes) throw new AppError('too_large', `A ${what} form has at most ${maxBytes} bytes.`);
  return text + decoder.decode();
}

const NOWHERE = 'http://interlude.invalid';

/** A longer path is dropped: it would make a cookie or a header that browsers and proxies don't accept. */
const MAX_LENGTH = 1_024;

/**
 * Where to go after the sign-in: a path of this server and nothing else. It is resolved as a browser would resolve it
 * (which reads `/\host`, tabs and `/.//host` in its own way), and what still names a host afterwards is dropped.
 */
export function nextPath(next: string | null): string {
  if (next === null || !next.startsWith('/') || !URL.canParse(next, NOWHERE)) return '/';
  const url = new URL(next, NOWHERE);
  if (url.origin !== NOWHERE || url.pathname.startsWith('//')) return '/';
  const path = `${url.pathname}${url.search}${url.hash}`;
  return path.length > MAX_LENGTH ? '/' : path;
}
