import { API_ADDRESS } from '@interlude/protocol/version';
import { page } from '@/components/live/api-fetch';
import type { EmbedPlace } from './port-messages';
import { withoutBasePath } from '@interlude/protocol/base-path.mjs';

/**
 * What a press on a link does in a frame: the console is told of one to the dashboard, and bytes of the API are fetched
 * with the token. All others, and those meant for another tab, stay the browser's.
 *
 * @returns stop
 */
export function followLinks(tell: (to: EmbedPlace, path: string) => void): () => void {
  const onClick = (event: MouseEvent) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (link === null || event.defaultPrevented) return;
    const isBytes = link.host === location.host && link.pathname.startsWith(`${API_ADDRESS}/`);
    // By the cookie it would be somebody else's question.
    if (isBytes) void download(link);
    else {
      if (!isPlain || link.target === '_blank' || link.getAttribute('href')?.startsWith('#')) return;
      const place = placeOf(link.href, location.host);
      if (place === null) return;
      tell(place.to, place.path);
    }
    event.preventDefault();
    event.stopPropagation();
  };
  // before React's own, which listens at the same place and asks the router
  addEventListener('click', onClick, { capture: true });
  addEventListener('auxclick', onClick, { capture: true });
  return () => {
    removeEventListener('click', onClick, { capture: true });
    removeEventListener('auxclick', onClick, { capture: true });
  };
}

/** Long enough for the browser to begin. */
const KEPT_MS = 60_000;

async function download({ pathname, search, download: name }: HTMLAnchorElement): Promise<void> {
  const answer = await page.way?.(pathname + search).catch(() => null);
  if (!answer?.ok) return;
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement('a');
  link.href = address;
  link.download = name || nameIn(answer.headers.get('content-disposition')) || 'download';
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}

/** @param disposition as in `attachment; filename="agent.log"` */
function nameIn(disposition: string | null): string {
  return /filename="([^"]+)"/.exec(disposition ?? '')?.[1] ?? '';
}

const PLACES: [RegExp, (id: string, anchor: string | null) => EmbedPlace][] = [
  [/^\/$/, () => ({ fleet: true })],
  [/^\/sessions\/([^/]+)$/, (session, anchor) => ({ session, anchor })],
  [/^\/agents\/([^/]+)$/, (agent) => ({ agent })],
  [/^\/agents\/([^/]+)\/logs$/, (agentLogs, anchor) => ({ agentLogs, anchor })],
];

/**
 * What a link to a page of the dashboard leads to.
 *
 * @param host the dashboard's own, with its port
 * @returns null for any other link
 */
export function placeOf(href: string, host: string): { to: EmbedPlace; path: string } | null {
  if (!URL.canParse(href)) return null;
  const url = new URL(href);
  if (url.host !== host || !/^https?:$/.test(url.protocol)) return null;
  const path = withoutBasePath(url.pathname);
  if (path === null) return null;
  for (const [pattern, make] of PLACES) {
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
