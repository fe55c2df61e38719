/** What tells a client from others where clients wait in line. It proves nothing: who comes in has been decided before. */
export function clientOf(headers: Pick<Headers, 'get'>): string {
  const names = ['authorization', 'cookie', 'x-forwarded-for', 'user-agent'];
  return names.map((name) => headers.get(name) ?? '').join('\n');
}
