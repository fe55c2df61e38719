/** Identifies a client among those that wait in line. It proves nothing: access was decided before. */
export function clientOf(headers: Pick<Headers, 'get'>): string {
  const names = ['authorization', 'cookie', 'x-forwarded-for', 'user-agent'];
  return names.map((name) => headers.get(name) ?? '').join('\n');
}
