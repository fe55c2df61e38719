import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { AppError } from '@interlude/protocol/errors';
import { FORM_POLICY } from './response-headers.mjs';

interface PlainLink {
  href: string;
  text: string;
}

/** A single button that posts to one of our paths. */
interface PlainForm {
  action: string;
  fields: Readonly<Record<string, string>>;
  text: string;
}

/** A page outside the dashboard: text and one link or button, without scripts or styles. */
export function plainPage(title: string, text: string, control: PlainLink | PlainForm, status: number): Response {
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · Interlude</title>
<main>
<h1>${escaped(title)}</h1>
<p>${escaped(text)}</p>
${'href' in control ? linkOf(control) : formOf(control)}
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
  return `<form method="post" action="${escaped(withBasePath(action))}">\n${inputs.join('')}<button>${escaped(text)}</button>\n</form>`;
}

const SIGNS: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => SIGNS[sign] ?? sign);
}

/**
 * Reads a form body up to a size limit, because the sender is unknown.
 *
 * @param form names the form in the error
 * @throws AppError `malformed`, `too_large`
 */
export async function readForm(
  request: Request,
  form: 'sign-in' | 'sign-out' | 'logout',
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
  if (bytes > maxBytes)
    throw new AppError('too_large', `A ${form} form may have at most ${maxBytes} bytes. Shorten it.`);
  return text + decoder.decode();
}

const NOWHERE = 'http://interlude.invalid';

/** Longer paths would exceed the cookie and header limits of browsers and proxies. */
const MAX_LENGTH = 1_024;

/**
 * Returns the path on this server to open after sign-in. Resolved as browsers do (`/\host`, tabs, `/.//host`); a path
 * that then names a host becomes `/`.
 */
export function nextPath(next: string | null): string {
  if (next === null || !next.startsWith('/') || !URL.canParse(next, NOWHERE)) return '/';
  const url = new URL(next, NOWHERE);
  if (url.origin !== NOWHERE || url.pathname.startsWith('//')) return '/';
  const path = `${url.pathname}${url.search}${url.hash}`;
  return path.length > MAX_LENGTH ? '/' : path;
}
