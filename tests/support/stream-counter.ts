import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stands between a browser and a server, changes nothing, and counts the live streams that are open through it. */
export interface StreamCounter {
  origin: string;
  /** Streams open now. */
  readonly open: number;
  /** Most of them that were ever open at once. */
  readonly most: number;
  close(): Promise<void>;
}

export async function countStreams(target: string): Promise<StreamCounter> {
  const { hostname, port } = new URL(target);
  let [open, most] = [0, 0];
  const proxy = createServer((incoming, outgoing) => {
    const { method, url = '/', headers } = incoming;
    const isStream = url.startsWith('/api/v1/stream');
    if (isStream) most = Math.max(most, ++open);
    const onward = request({ hostname, port, method, path: url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => {
      if (isStream) open -= 1;
      onward.destroy();
    });
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    get open() {
      return open;
    },
    get most() {
      return most;
    },
    close: () =>
      new Promise((resolve) => {
        proxy.close(() => resolve());
        proxy.closeAllConnections();
      }),
  };
}
