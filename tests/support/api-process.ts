import { createServer as listen } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createServer } from '@/lib/server/create-server';

/** Serves a dashboard's API without pages on a port of 127.0.0.1, in its own process. Prints the port. */
const server = createServer(process.env);
const front = listen(async (incoming, outgoing) => {
  try {
    const body = incoming.method === 'GET' ? null : (Readable.toWeb(incoming) as ReadableStream);
    const headers = incoming.headers as Record<string, string>;
    const init = { method: incoming.method, headers, body, duplex: 'half' } as RequestInit;
    const response = await server.handle(new Request(`http://${incoming.headers.host}${incoming.url}`, init));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body === null) outgoing.end();
    else await pipeline(Readable.fromWeb(response.body as never), outgoing);
  } catch {
    outgoing.destroy();
  }
});
void server.start();
front.listen(0, '127.0.0.1', () => {
  const address = front.address();
  process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`);
});
process.once('SIGTERM', () => process.exit());
