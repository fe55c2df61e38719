import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stands before a libSQL server and hears what it is asked. To those who come this way, it has no feed of changes. */
export interface HeardLine {
  origin: string;
  /** How many requests have looked like this. */
  asked(like: RegExp): number;
  close(): Promise<void>;
}

export async function heardLine(target: string): Promise<HeardLine> {
  const heard: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk) => chunks.push(chunk));
    incoming.on('end', () => {
      const { method, url = '/', headers } = incoming;
      heard.push(`${method} ${url} ${Buffer.concat(chunks)}`);
      if (url.includes('/beta/listen')) {
        outgoing.writeHead(404).end();
        return;
      }
      const asking = request(`${target}${url}`, { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      asking.on('error', () => outgoing.destroy());
      asking.end(Buffer.concat(chunks));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: (like) => heard.filter((text) => like.test(text)).length,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
