import { PAGE_HEADER } from '@/lib/protocol/page-header';
import { API_ADDRESS } from '@/lib/protocol/version';

/**
 * How this page asks the server. Null: as whoever has signed in by cookie. An embed puts its own way here before it asks
 * for anything, and then nothing goes by the cookie, is shared with other tabs, or is kept by the browser.
 */
export const page: { way: typeof fetch | null } = { way: null };

/** @param path below /api/v1, with a leading slash */
export function askServer(path: string, init: RequestInit, way: typeof fetch = page.way ?? fetch): Promise<Response> {
  return way(API_ADDRESS + path, {
    credentials: 'same-origin',
    cache: 'no-store',
    ...init,
    headers: { ...(init.headers as Record<string, string>), [PAGE_HEADER]: '1' },
  });
}
