import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A line between a browser and a server that a test can break. */
export interface SwallowingProxy {
  origin: string;
  /** Drops all data and keeps every connection open, new ones too. */
  swallow(): void;
  /** Ends every connection, new ones too, as soon as it is open. */
  sever(): void;
  /** Lets new connections through, and ends those from before. */
  mend(): void;
  close(): Promise<void>;
}

export async function swallowingProxy(target: string): Promise<SwallowingProxy> {
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
