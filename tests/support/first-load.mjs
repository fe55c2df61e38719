import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { root } from '../../lib/launch/paths.mjs';

const KB = 1_000;

/** Maximum gzipped size of a page's initial scripts. Scripts loaded on demand don't count. */
const MOST_BYTES = new Map([
  ['/', 180 * KB],
  ['/sessions/[sessionId]', 220 * KB],
  ['/agents/[agentId]/logs', 220 * KB],
  ['/inbox', 210 * KB],
  ['/agents', 210 * KB],
]);

/**
 * Reports the initial script size of each page.
 *
 * @returns {{ lines: string[], tooHeavy: string[] }} `tooHeavy`: lines of pages over their limit
 */
export function firstLoad() {
  /** @type {{ route: string, firstLoadChunkPaths: string[] }[]} */
  const routes = JSON.parse(readFileSync(join(root, '.next', 'diagnostics', 'route-bundle-stats.json'), 'utf8'));
  const rows = routes.map(({ route, firstLoadChunkPaths }) => {
    const bytes = firstLoadChunkPaths.reduce((sum, path) => sum + gzipSync(readFileSync(join(root, path))).length, 0);
    const most = MOST_BYTES.get(route) ?? Number.POSITIVE_INFINITY;
    const limit = most === Number.POSITIVE_INFINITY ? '' : ` of ${most / KB}`;
    return { line: `${route.padEnd(26)} ${(bytes / KB).toFixed(1)}${limit} kB`, isTooHeavy: bytes > most };
  });
  for (const route of MOST_BYTES.keys()) {
    if (!routes.some((one) => one.route === route))
      rows.push({ line: `${route} is not in the build`, isTooHeavy: true });
  }
  return {
    lines: rows.map(({ line }) => line),
    tooHeavy: rows.filter(({ isTooHeavy }) => isTooHeavy).map(({ line }) => line),
  };
}
