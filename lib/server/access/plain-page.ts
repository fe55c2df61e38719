import { withBasePath } from '@interlude/protocol/base-path.mjs';
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
  return `<form method="post" action="${escaped(withBasePath(action))}">\n${inputs.join('')}<button>${escaped(text)}</button>\n</form>`;
}

const SIGNS: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => SIGNS[sign] ?? sign);
}
