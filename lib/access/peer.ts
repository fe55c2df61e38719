/** The other end of a request. */
export interface Peer {
  /** What tells it from others where clients wait in line. It proves nothing: who comes in has been decided before. */
  client: string;
  /** Breaks its connection, unless all of the answer has left; whatever is still on its way is lost. */
  hangUp(): void;
}

/** Whose connection it is that is being answered: the front door knows, and a Request does not say. */
const CONNECTION = Symbol.for('interlude.connection');
const holder = globalThis as { [CONNECTION]?: { getStore(): { hangUp(): void } | undefined } };

/** To be asked while the request is being answered. Where no front door stands before, hanging up does nothing. */
export function peerOf(request: Request): Peer {
  const connection = holder[CONNECTION]?.getStore();
  return { client: clientOf(request.headers), hangUp: () => connection?.hangUp() };
}

export function clientOf(headers: Pick<Headers, 'get'>): string {
  const names = ['authorization', 'cookie', 'x-forwarded-for', 'user-agent'];
  return names.map((name) => headers.get(name) ?? '').join('\n');
}
