import { withoutBasePath } from '@interlude/protocol/base-path.mjs';
import { API_ADDRESS } from '@interlude/protocol/version';
import { pageTransport } from '@/components/live/api-fetch';
import type { EmbedPlace } from './port-messages';

/**
 * Handles links in a frame: reports links to the dashboard to the console, and downloads API files with the token. The
 * browser handles other links, and links to another tab.
 *
 * @returns a function that stops it
 */
export function followLinks(report: (to: EmbedPlace, path: string) => void): () => void {
  const onClick = (event: MouseEvent) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (link === null || event.defaultPrevented) return;
    const isBytes = link.host === location.host && link.pathname.startsWith(`${API_ADDRESS}/`);
    // The browser's own download would use the cookie.
    if (isBytes) void download(link);
    else {
      if (!isPlain || link.target === '_blank' || link.getAttribute('href')?.startsWith('#')) return;
      const place = placeOf(link.href, location.host);
      if (place === null) return;
      report(place.to, place.path);
    }
    event.preventDefault();
    event.stopPropagation();
  };
  // before React's listener, which would call the router
  addEventListener('click', onClick, { capture: true });
  addEventListener('auxclick', onClick, { capture: true });
  return () => {
    removeEventListener('click', onClick, { capture: true });
    removeEventListener('auxclick', onClick, { capture: true });
  };
}

/** Long enough for the browser to start the download. */
const KEPT_MS = 60_000;

async function download({ pathname, search, download: name }: HTMLAnchorElement): Promise<void> {
  const response = await pageTransport.fetch?.(pathname + search).catch(() => null);
  if (!response?.ok) return;
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement('a');
  link.href = address;
  link.download = name || nameIn(response.headers.get('content-disposition')) || 'download';
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}

/** @param disposition as in `attachment; filename="agent.log"` */
function nameIn(disposition: string | null): string {
  return /filename="([^"]+)"/.exec(disposition ?? '')?.[1] ?? '';
}

const PAGES: [RegExp, (id: string, anchor: string | null) => EmbedPlace][] = [
  [/^\/$/, () => ({ fleet: true })],
  [/^\/sessions\/([^/]+)$/, (session, anchor) => ({ session, anchor })],
  [/^\/agents\/([^/]+)$/, (agent) => ({ agent })],
  [/^\/agents\/([^/]+)\/logs$/, (agentLogs, anchor) => ({ agentLogs, anchor })],
];

/**
 * The target of a link to a page of the dashboard.
 *
 * @param host of the dashboard, with its port
 * @returns null for other links
 */
export function placeOf(href: string, host: string): { to: EmbedPlace; path: string } | null {
  if (!URL.canParse(href)) return null;
  const url = new URL(href);
  if (url.host !== host || !/^https?:$/.test(url.protocol)) return null;
  const path = withoutBasePath(url.pathname);
  if (path === null) return null;
  for (const [pattern, make] of PAGES) {
    const match = pattern.exec(path);
    if (match === null) continue;
    const anchor = url.hash.length > 1 ? decoded(url.hash.slice(1)) : null;
    return { to: make(decoded(match[1] ?? ''), anchor), path: `${path}${url.hash}` };
  }
  return null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
