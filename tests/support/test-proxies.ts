import { createServer as createHttpServer, request } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy between browser and server that a test can break. */
export interface BreakableProxy {
  origin: string;
  /** Drops all data but keeps connections open, including new ones. */
  swallow(): void;
  /** Closes all connections, and new ones as soon as they open. */
  sever(): void;
  /** Restores service: closes earlier connections and forwards new ones. */
  mend(): void;
  close(): Promise<void>;
}

export async function breakableProxy(target: string): Promise<BreakableProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isDead = false;
  let isSevered = false;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const passOn = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.on('data', (bytes) => isDead || to.write(bytes));
    from.on('end', () => isDead || to.end());
    from.on('error', () => from.destroy());
    from.on('close', () => {
      sockets.delete(from);
      if (!isDead) to.destroy();
    });
  };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    if (isSevered) {
      near.destroy();
      return;
    }
    const far = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    passOn(near, far);
    passOn(far, near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    swallow() {
      isDead = true;
    },
    sever() {
      isSevered = true;
      cut();
    },
    mend() {
      isDead = false;
      isSevered = false;
      cut();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}

/** A transparent proxy that counts open live streams. */
interface StreamCounter {
  origin: string;
  /** Currently open streams. */
  readonly open: number;
  /** Maximum number of concurrent streams. */
  readonly most: number;
  close(): Promise<void>;
}

export async function streamCountingProxy(target: string): Promise<StreamCounter> {
  const { hostname, port } = new URL(target);
  let [open, most] = [0, 0];
  const proxy = createHttpServer((incoming, outgoing) => {
    const { method, url = '/', headers } = incoming;
    const isStream = url.startsWith('/api/v1/stream');
    if (isStream) most = Math.max(most, ++open);
    const onward = request({ hostname, port, method, path: url, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      outgoing.flushHeaders();
      response.pipe(outgoing);
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

/** A proxy that simulates a slow, unreliable network: delayed data, connections that break at any moment. */
export interface UnreliableProxy {
  origin: string;
  /** Number of forwarded requests. */
  readonly requests: number;
  /** Number of lost requests and responses. */
  readonly lost: number;
  /** Sets the probabilities (0 to 1) of losing a request or response together with its connection. */
  lose(shares: { requests: number; answers: number }): void;
  /** Breaks each connection after a random number of bytes up to this limit; null: never. */
  breakWithin(bytes: number | null): void;
  /** Breaks all open connections. */
  cut(): void;
  close(): Promise<void>;
}

/** @param oneWayMs half of the round-trip time */
export async function unreliableProxy(
  target: string,
  oneWayMs: number,
  random: () => number = Math.random,
): Promise<UnreliableProxy> {
  const { hostname, port } = new URL(target);
  const pairs = new Set<readonly Socket[]>();
  let shares = { requests: 0, answers: 0 };
  let longest: number | null = null;
  let requests = 0;
  let losses = 0;
  const server = createServer((near) => {
    const far = connect({ port: Number(port), host: hostname });
    const pair = [near, far] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    let left: number | null = null;
    const carry = (from: Socket, to: Socket, isLost: (bytes: Buffer) => boolean) => {
      from.setNoDelay(true);
      from.on('data', (bytes) => {
        const lost = isLost(bytes);
        if (lost) losses += 1;
        if (longest === null) left = null;
        else left = (left ?? Math.ceil(random() * longest)) - bytes.length;
        const [passing, breaks] = left !== null && left < 0 ? [bytes.subarray(0, left), true] : [bytes, lost];
        setTimeout(() => {
          if (to.destroyed) return;
          if (!lost) to.write(passing, () => breaks && end());
          else end();
        }, oneWayMs);
      });
      from.on('end', () => setTimeout(() => to.end(), oneWayMs));
      from.on('error', end);
      from.on('close', () => setTimeout(end, oneWayMs));
    };
    carry(near, far, (bytes) => {
      const isRequestStart = /^(POST|GET) /.test(bytes.toString('latin1', 0, 5));
      if (isRequestStart) requests += 1;
      return isRequestStart && random() < shares.requests;
    });
    carry(far, near, (bytes) => bytes.toString('latin1', 0, 5) === 'HTTP/' && random() < shares.answers);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const pair of [...pairs]) for (const socket of pair) socket.destroy();
  };
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get requests() {
      return requests;
    },
    get lost() {
      return losses;
    },
    lose: (now) => {
      shares = now;
    },
    breakWithin: (bytes) => {
      longest = bytes;
    },
    cut,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}

/** A proxy that records requests to a libSQL server. Hides the server's change feed. */
export interface RecordingProxy {
  origin: string;
  /** Number of requests that match. */
  asked(like: RegExp): number;
  close(): Promise<void>;
}

export async function recordingProxy(target: string): Promise<RecordingProxy> {
  const received: string[] = [];
  const server = createHttpServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk) => chunks.push(chunk));
    incoming.on('end', () => {
      const { method, url = '/', headers } = incoming;
      received.push(`${method} ${url} ${Buffer.concat(chunks)}`);
      if (url.includes('/beta/listen')) {
        outgoing.writeHead(404).end();
        return;
      }
      const asking = request(`${target}${url}`, { method, headers }, (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      });
      asking.on('error', () => outgoing.destroy());
      asking.end(Buffer.concat(chunks));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: (like) => received.filter((text) => like.test(text)).length,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
