import { withoutBasePath } from '@interlude/protocol/base-path.mjs';
import type { EmbedPlace } from './port-messages';

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
