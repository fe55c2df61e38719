/** The other end of a request. */
export interface Peer extends Connection {
  /** What tells it from others where clients wait in line. It proves nothing: who comes in has been decided before. */
  client: string;
}

/** What carries the answer, as far as somebody who streams one may touch it. */
export interface Connection {
  /**
   * Breaks it, unless all of the answer has left; whatever is still on its way is lost. Bytes that have left a stream
   * lie in Node's buffers, and where a reader does not read, only this takes them back.
   */
  hangUp(): void;
  /**
   * Sends a chunk at once, without the dozen promises that each takes on its way through a stream.
   *
   * @param behind how many bytes of the answer it comes after
   * @returns false, and nothing is sent, unless just those have left the stream and the reader keeps up
   */
  pass(chunk: Uint8Array, behind: number): boolean;
}

/** Where no front door stands before: everything takes the stream, and hanging up does nothing. */
export const NO_CONNECTION: Connection = { hangUp: () => {}, pass: () => false };

/** Whose connection it is that is being answered: the front door knows, and a Request does not say. */
const CONNECTION = Symbol.for('interlude.connection');
const holder = globalThis as { [CONNECTION]?: { getStore(): Connection | undefined } };

/** To be asked while the request is being answered. */
export function peerOf(request: Request): Peer {
  const connection = holder[CONNECTION]?.getStore() ?? NO_CONNECTION;
  return {
    client: clientOf(request.headers),
    hangUp: () => connection.hangUp(),
    pass: (chunk, behind) => connection.pass(chunk, behind),
  };
}

export function clientOf(headers: Pick<Headers, 'get'>): string {
  const names = ['authorization', 'cookie', 'x-forwarded-for', 'user-agent'];
  return names.map((name) => headers.get(name) ?? '').join('\n');
}
