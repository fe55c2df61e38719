import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { reservePort } from './reserve-port.mjs';

/**
 * A serverless function instance. Its process is frozen while no request is in progress, starting when its last
 * response has been sent.
 */
export interface FrozenFunction {
  /** URL of the host in front of the function. */
  url: string;
  /** Number of freezes. */
  readonly freezes: number;
  /** Process output. */
  readonly output: string;
  /** Evicts the instance. The next request starts a new one. */
  kill9(): Promise<void>;
  stop(): Promise<void>;
}

const program = fileURLToPath(new URL('./function-process.mjs', import.meta.url));

/** @param launcher path of the built launcher */
export async function startFrozenFunction(launcher: string, env: Record<string, string>): Promise<FrozenFunction> {
  let running: Promise<{ child: ChildProcess; port: number }> | null = null;
  let underWay = 0;
  let freezes = 0;
  let output = '';

  async function start() {
    const port = await reservePort();
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('INTERLUDE_'));
    const child = spawn(process.execPath, [program, launcher, String(port)], {
      env: { ...Object.fromEntries(kept), NODE_ENV: 'production', VERCEL: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const keep = (chunk: Buffer) => {
      output = (output + chunk).slice(-20_000);
    };
    child.stderr?.on('data', keep);
    child.stdout?.on('data', keep);
    await Promise.race([
      once(child.stdout as NodeJS.ReadableStream, 'data'),
      once(child, 'exit').then(() => Promise.reject(new Error(`the function exited: ${output}`))),
    ]);
    return { child, port };
  }

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    underWay += 1;
    running ??= start();
    const { child, port } = await running;
    child.kill('SIGCONT');
    await new Promise<void>((resolve) => {
      const { method, url: path, headers } = incoming;
      const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
        response.on('close', resolve);
      });
      sent.on('error', () => {
        if (outgoing.headersSent) outgoing.destroy();
        else outgoing.writeHead(502).end();
        resolve();
      });
      // a client that disconnects aborts its upstream request
      outgoing.on('close', () => sent.destroy());
      incoming.pipe(sent);
    });
    underWay -= 1;
    if (underWay > 0 || child.exitCode !== null || child.signalCode !== null) return;
    freezes += 1;
    child.kill('SIGSTOP');
  }

  async function end(): Promise<void> {
    const ending = running;
    running = null;
    if (ending === null) return;
    const { child } = await ending;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  const host = createServer((incoming, outgoing) => void forward(incoming, outgoing));
  host.listen(0, '127.0.0.1');
  await once(host, 'listening');
  return {
    url: `http://127.0.0.1:${(host.address() as AddressInfo).port}`,
    get freezes() {
      return freezes;
    },
    get output() {
      return output;
    },
    kill9: end,
    async stop() {
      host.closeAllConnections();
      host.close();
      await end();
    },
  };
}
