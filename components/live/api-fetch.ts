import { API_ADDRESS, PAGE_HEADER, PRINCIPAL_HEADER, USED_PAGE } from '@interlude/protocol/version';
import { hasPageEnded, personId } from '@/components/ui/browser-storage';

/**
 * Sends this page's requests; null for the browser's own fetch with its cookie. An embed sets its own fetch before its
 * first request. It then uses no cookie, shares nothing between tabs and stores nothing.
 */
export const pageTransport: { fetch: typeof fetch | null } = { fetch: null };

/** Requests count as use for this long after an input, in milliseconds. */
const PRESENT_MS = 60_000;
let lastInputAt = Number.NEGATIVE_INFINITY;

function noteInput({ isTrusted }: Event): void {
  if (isTrusted) lastInputAt = Date.now();
}

for (const type of ['pointerdown', 'click', 'keydown', 'wheel']) {
  // A shared worker has no document, and its requests never count as use.
  globalThis.document?.addEventListener(type, noteInput, { capture: true, passive: true });
}

/**
 * Headers of every request: they identify a page as the sender, name the signed-in user and state whether the page was
 * used recently.
 */
export function pageHeaders(): Record<string, string> {
  const id = personId();
  const isUsed = Date.now() - lastInputAt < PRESENT_MS;
  return { [PAGE_HEADER]: isUsed ? USED_PAGE : '1', ...(id === null ? {} : { [PRINCIPAL_HEADER]: id }) };
}

/**
 * @param path below /api/v1, with a leading slash
 * @throws TypeError if the server can't be reached or the page has ended
 */
export async function apiFetch(
  path: string,
  init: RequestInit,
  send: typeof fetch = pageTransport.fetch ?? fetch,
): Promise<Response> {
  if (hasPageEnded()) throw new TypeError('You signed out. Reload the page to sign in again.');
  return send(API_ADDRESS + path, {
    credentials: 'same-origin',
    cache: 'no-store',
    ...init,
    headers: { ...(init.headers as Record<string, string>), ...pageHeaders() },
  });
}
