import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Starts bare-server.mjs in its own process, like the server it is compared with. */
export async function startBareServer(): Promise<{ url: string; token: string; stop(): Promise<void> }> {
  const child = fork(fileURLToPath(new URL('bare-server.mjs', import.meta.url)), {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    execArgv: [],
  });
  const [port] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [Buffer];
  return {
    url: `http://127.0.0.1:${Number(port)}`,
    token: 'none',
    async stop() {
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    },
  };
}
