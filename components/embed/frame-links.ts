import { API_ADDRESS } from '@interlude/protocol/version';
import { page } from '@/components/live/api-fetch';
import { placeOf } from './followed-link';
import type { EmbedPlace } from './port-messages';

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
