import { AppError } from '@interlude/protocol/errors';
import { METHODS, type Method, ROUTES, type Route } from './routes';

/** All the routes of one pattern. */
interface Place {
  parts: readonly string[];
  routes: Partial<Record<Method, Route>>;
}

export type Found =
  | { kind: 'route'; route: Route; ids: Record<string, string> }
  | { kind: 'other-method'; allow: string; isOpen: boolean }
  | { kind: 'nothing' };

const places = placesOf(ROUTES);

/**
 * @param pathname as it stands in the URL; ids are decoded
 * @throws AppError `malformed` for an id that can't be
 */
export function findRoute(method: string, pathname: string): Found {
  const parts = pathname.split('/');
  for (const place of places.get(parts.length) ?? []) {
    const ids = idsOf(place.parts, parts);
    if (ids === null) continue;
    const route = place.routes[method as Method];
    if (route !== undefined) return { kind: 'route', route, ids };
    const allowed = METHODS.filter((each) => place.routes[each] !== undefined);
    const isOpen = allowed.every((each) => place.routes[each]?.access === 'open');
    return { kind: 'other-method', allow: allowed.join(', '), isOpen };
  }
  return { kind: 'nothing' };
}

function idsOf(pattern: readonly string[], parts: readonly string[]): Record<string, string> | null {
  const ids: Record<string, string> = {};
  for (const [at, wanted] of pattern.entries()) {
    const part = parts[at] ?? '';
    if (!wanted.startsWith(':')) {
      if (part !== wanted) return null;
    } else if (part === '') return null;
    else ids[wanted.slice(1)] = part;
  }
  for (const name of Object.keys(ids)) ids[name] = decoded(ids[name] ?? '');
  return ids;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new AppError(
      'malformed',
      'The path is not valid UTF-8 in percent-encoding. Encode each part with encodeURIComponent.',
    );
  }
}

/** By how many parts a path has. */
function placesOf(routes: readonly Route[]): Map<number, Place[]> {
  const byPattern = new Map<string, Place>();
  const byLength = new Map<number, Place[]>();
  for (const route of routes) {
    const place = byPattern.get(route.pattern) ?? { parts: route.pattern.split('/'), routes: {} };
    if (!byPattern.has(route.pattern)) {
      byPattern.set(route.pattern, place);
      byLength.set(place.parts.length, [...(byLength.get(place.parts.length) ?? []), place]);
    }
    place.routes[route.method] = route;
  }
  return byLength;
}
