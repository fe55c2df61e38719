import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

type Pass = (request: Request) => Promise<Response>;
/** What a broken server does with a request, and with what a right one would answer. */
export type Tamper = (request: Request, pass: Pass) => Promise<Response>;

/** A server of this process on a port of its own, under the name it is called by, right or broken. */
export async function frontOf(
  handle: Pass,
  tamper: Tamper = (request, pass) => pass(request),
): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
    const body = hasBody ? { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' } : {};
    const asked = new Request(`http://127.0.0.1${request.url}`, {
      ...{ method: request.method, headers, signal: gone.signal },
      ...body,
    } as RequestInit);
    try {
      const answer = await tamper(asked, handle);
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.flushHeaders();
      if (answer.body) await pipeline(Readable.fromWeb(answer.body as never), response);
      else response.end();
    } catch {
      response.destroy();
    }
  });
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

/** The same answer with another JSON body, where it has one. */
export async function withBody(answer: Response, change: (body: Record<string, unknown>) => object): Promise<Response> {
  if (!/json/.test(answer.headers.get('content-type') ?? '')) return answer;
  const headers = new Headers(answer.headers);
  headers.delete('content-length');
  return new Response(JSON.stringify(change(await answer.json())), { status: answer.status, headers });
}
