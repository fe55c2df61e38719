import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/**
 * A server of this process on a port, for what only speaks HTTP.
 *
 * @param target `origin`: the name it is to be called by; without one, the name it is called by
 */
export async function serveOverHttp(target: {
  origin?: string;
  fetch(request: Request): Promise<Response>;
}): Promise<{ url: string; close(): Promise<void> }> {
  const { origin = 'http://127.0.0.1' } = target;
  const server = createServer(async (request, response) => {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    if (target.origin !== undefined) headers.set('host', new URL(target.origin).host);
    const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
    const body = hasBody ? { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' } : {};
    try {
      const init = { method: request.method, headers, signal: gone.signal, ...body } as RequestInit;
      const answer = await target.fetch(new Request(origin + request.url, init));
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.flushHeaders();
      if (answer.body) await pipeline(Readable.fromWeb(answer.body as never), response);
      else response.end();
    } catch {
      response.destroy();
    }
  });
  // Where client and server are one process, and that is held up, the one uses a connection as the other closes it.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
