import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Stands before a server, as a long line does: what is sent arrives later, and a connection may break at any moment. */
export interface LongLine {
  origin: string;
  /** How often a request has gone through it. */
  readonly requests: number;
  /** How many requests and answers it has lost. */
  readonly lost: number;
  /** From now on, so many of the requests and so many of the answers are lost with their connection, between 0 and 1. */
  lose(shares: { requests: number; answers: number }): void;
  /** From now on each connection breaks after some number of bytes, wherever that falls, up to this one; null: none does. */
  breakWithin(bytes: number | null): void;
  /** Breaks every connection there is. */
  cut(): void;
  close(): Promise<void>;
}

/** @param oneWayMs half of the time between a request and its answer */
export async function longLine(
  target: string,
  oneWayMs: number,
  random: () => number = Math.random,
): Promise<LongLine> {
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
      const begins = /^(POST|GET) /.test(bytes.toString('latin1', 0, 5));
      if (begins) requests += 1;
      return begins && random() < shares.requests;
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
