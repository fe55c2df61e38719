import { API_BASE } from '@interlude/protocol/version';

/**
 * A frame that is sandboxed without `allow-same-origin` has no origin: its requests to its own server count as ones from
 * elsewhere, and say `Origin: null`. They may be read where they carry no cookie: what they are allowed, their bearer
 * token says.
 */
function isFromOpaque({ headers, url }: Request): boolean {
  if (headers.get('origin') !== 'null' || headers.get('cookie') !== null) return false;
  return new URL(url).pathname.startsWith(`${API_BASE}/`);
}

const ALLOWED = {
  'access-control-allow-origin': '*',
  vary: 'origin',
};

const PREFLIGHT = {
  ...ALLOWED,
  'access-control-allow-methods': 'GET, POST, PUT',
  'access-control-allow-headers': 'authorization, content-type, if-none-match, last-event-id, x-interlude-page',
  'access-control-max-age': '600',
};

/** What a browser asks beforehand; null if this is something else. It tells nothing, so that nobody needs to be known. */
export function preflightAnswer(request: Request): Response | null {
  const isPreflight = request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
  return isPreflight && isFromOpaque(request) ? new Response(null, { status: 204, headers: PREFLIGHT }) : null;
}

/** Lets such a frame read the answer, be it a refusal. */
export function readableByOpaque<Answer extends Response>(request: Request, answer: Answer): Answer {
  if (!isFromOpaque(request)) return answer;
  for (const [name, value] of Object.entries(ALLOWED)) answer.headers.append(name, value);
  answer.headers.set('access-control-expose-headers', 'content-disposition');
  return answer;
}
