const NOWHERE = 'http://interlude.invalid';

/** A longer path is dropped: it would make a cookie or a header that browsers and proxies don't accept. */
const MAX_LENGTH = 1_024;

/**
 * Where to go after the sign-in: a path of this server and nothing else. It is resolved as a browser would resolve it
 * (which reads `/\host`, tabs and `/.//host` in its own way), and what still names a host afterwards is dropped.
 */
export function nextPath(next: string | null): string {
  if (next === null || !next.startsWith('/') || !URL.canParse(next, NOWHERE)) return '/';
  const url = new URL(next, NOWHERE);
  if (url.origin !== NOWHERE || url.pathname.startsWith('//')) return '/';
  const path = `${url.pathname}${url.search}${url.hash}`;
  return path.length > MAX_LENGTH ? '/' : path;
}
