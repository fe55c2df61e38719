import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/**
 * Serves an in-process server on a port.
 *
 * @param target `origin`: the server's public name; default: the local address
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
  // If client and server share a blocked process, one may reuse a connection that the other is closing.
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
