/**
 * What tells the clients of this server apart where they wait in line: what they sign in with, from where, and with
 * which program. It proves nothing; who comes in has been decided before.
 */
export function clientOf(headers: Pick<Headers, 'get'>): string {
  const names = ['authorization', 'cookie', 'x-forwarded-for', 'user-agent'];
  return names.map((name) => headers.get(name) ?? '').join('\n');
}
