/** An address as people are shown it: a password, or a key in its query, is nobody's business. */
export function shownUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
