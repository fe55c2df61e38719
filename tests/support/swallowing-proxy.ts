import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Stands between a browser and a server, as a line does that can go dead: connections stay open, new ones are taken. */
export interface SwallowingProxy {
  origin: string;
  /** Nothing comes through, and nobody is told: no connection ends. */
  swallow(): void;
  /** New connections get through. Those that were there are known to nobody any more. */
  mend(): void;
  close(): Promise<void>;
}

export async function swallowingProxy(target: string): Promise<SwallowingProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isDead = false;
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
    mend() {
      isDead = false;
      cut();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}
