import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { reservePort } from '../support/reserve-port.mjs';

/** From Debian's libnginx-mod-nchan. */
const MODULE = '/usr/lib/nginx/modules/ngx_nchan_module.so';

/**
 * nginx with nchan as a baseline: forwards posts to every open stream from memory. One worker, because the server is
 * one process.
 *
 * @returns null if not installed
 */
export async function startNchanServer(): Promise<{ url: string; token: string; stop(): Promise<void> } | null> {
  if (!existsSync(MODULE) || spawnSync('nginx', ['-v']).status !== 0) return null;
  const folder = await mkdtemp(join(tmpdir(), 'interlude-nchan-'));
  const port = await reservePort();
  const config = join(folder, 'nginx.conf');
  await writeFile(
    config,
    `load_module ${MODULE};
    daemon off;
    # without a master, nchan frees its memory twice
    worker_processes 1;
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    pid ${folder}/pid;
    error_log stderr crit;
    events { worker_connections 4096; }
    http {
      access_log off;
      client_body_temp_path ${folder}/body;
      proxy_temp_path ${folder}/proxy;
      fastcgi_temp_path ${folder}/fastcgi;
      uwsgi_temp_path ${folder}/uwsgi;
      scgi_temp_path ${folder}/scgi;
      server {
        listen 127.0.0.1:${port};
        location = /healthz { return 200; }
        location = /api/v1/events { nchan_publisher; nchan_channel_id $http_x_bench; }
        location = /api/v1/stream {
          nchan_subscriber eventsource;
          nchan_subscriber_first_message newest;
          nchan_channel_id $arg_topic;
        }
      }
    }`,
  );
  const child = spawn('nginx', ['-e', 'stderr', '-p', folder, '-c', config], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  while (
    !(await fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error('nginx failed to start');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    url,
    token: 'none',
    async stop() {
      child.kill('SIGTERM');
      await gone;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

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
