import { API_ADDRESS, PAGE_HEADER, PRINCIPAL_HEADER, USED_PAGE } from '@interlude/protocol/version';
import { hasPageEnded, personId } from '@/components/ui/browser-storage';

/**
 * How this page asks the server. Null: as whoever has signed in by cookie. An embed puts its own way here before it asks
 * for anything, and then nothing goes by the cookie, is shared with other tabs, or is kept by the browser.
 */
export const page: { way: typeof fetch | null } = { way: null };

/** Milliseconds after an input during which requests count as use. */
const PRESENT_MS = 60_000;
let usedAt = Number.NEGATIVE_INFINITY;

function noteInput({ isTrusted }: Event): void {
  if (isTrusted) usedAt = Date.now();
}

for (const type of ['pointerdown', 'click', 'keydown', 'wheel']) {
  // a shared worker has no document, and its requests are never use
  globalThis.document?.addEventListener(type, noteInput, { capture: true, passive: true });
}

/** Headers of every request: marks it as a page's own, names its person, and says if they used the page lately. */
export function pageHeaders(): Record<string, string> {
  const id = personId();
  const isUsed = Date.now() - usedAt < PRESENT_MS;
  return { [PAGE_HEADER]: isUsed ? USED_PAGE : '1', ...(id === null ? {} : { [PRINCIPAL_HEADER]: id }) };
}

/**
 * @param path below /api/v1, with a leading slash
 * @throws TypeError if the server can't be reached or the page has ended
 */
export async function askServer(
  path: string,
  init: RequestInit,
  way: typeof fetch = page.way ?? fetch,
): Promise<Response> {
  if (hasPageEnded()) throw new TypeError('You signed out. Reload the page to sign in again.');
  return way(API_ADDRESS + path, {
    credentials: 'same-origin',
    cache: 'no-store',
    ...init,
    headers: { ...(init.headers as Record<string, string>), ...pageHeaders() },
  });
}
