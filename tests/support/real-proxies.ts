import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureDebianProgram } from './programs.mjs';
import { reservePort } from './reserve-port.mjs';

/** Runs real proxies with the unchanged files of deploy/, except for ports and certificate paths. */
const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
/** The host name in those files. */
export const PUBLIC_NAME = 'interlude.example.com';
const READY_WITHIN_MS = 20_000;

export interface RealProxy {
  stop(): Promise<void>;
}

/** A proxy's port, upstreams and certificate. */
interface ProxyPlan {
  port: number;
  /** Upstream ports, in the order of 4319 and 4320 in the file. */
  behind: readonly [string, string];
  certificate: Certificate;
}

export interface Certificate {
  folder: string;
  /** File paths. */
  certificate: string;
  key: string;
}

/** Creates a self-signed certificate for PUBLIC_NAME and 127.0.0.1. */
export async function ownCertificate(): Promise<Certificate> {
  const found = ensureDebianProgram('openssl');
  if ('missing' in found) throw new Error(found.missing);
  const folder = await mkdtemp(join(tmpdir(), 'interlude-certificate-'));
  const [certificate, key] = [join(folder, 'fullchain.pem'), join(folder, 'privkey.pem')];
  const names = `subjectAltName=DNS:${PUBLIC_NAME},IP:127.0.0.1`;
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const args = [
    'req',
    '-x509',
    ...kind,
    '-subj',
    '/CN=interlude',
    '-addext',
    names,
    '-keyout',
    key,
    '-out',
    certificate,
  ];
  const { status, stderr } = spawnSync(found.program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl failed to create a certificate: ${stderr}`);
  return { folder, certificate, key };
}

export async function startNginx(program: string, { port, behind, certificate }: ProxyPlan): Promise<RealProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'interlude-nginx-'));
  const site = withPorts(await readFile(join(DEPLOY, 'nginx.conf'), 'utf8'), behind)
    .replace('listen 80;', `listen 127.0.0.1:${await reservePort()};`)
    .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
    .replace('/etc/ssl/interlude/fullchain.pem', certificate.certificate)
    .replace('/etc/ssl/interlude/privkey.pem', certificate.key);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${folder}/${of};`);
  const user = process.getuid?.() === 0 ? 'user root root;' : '';
  const http = `http { access_log off; ${paths.join(' ')}\n${site}\n}`;
  const file = join(folder, 'nginx.conf');
  await writeFile(file, `${user} daemon off; pid ${folder}/pid; error_log stderr error; events {}\n${http}\n`);
  return running(program, ['-p', folder, '-e', 'stderr', '-c', file], port, folder);
}

export async function startCaddy(program: string, { port, behind, certificate }: ProxyPlan): Promise<RealProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'interlude-caddy-'));
  const file = join(folder, 'Caddyfile');
  const site = withPorts(readFileSync(join(DEPLOY, 'Caddyfile'), 'utf8'), behind);
  const tls = `\ttls ${certificate.certificate} ${certificate.key}\n`;
  // otherwise Caddy would create a local authority and install it as trusted
  const head = `{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n`;
  const sites = `https://${PUBLIC_NAME}:${port}, https://127.0.0.1:${port} {\n\tbind 127.0.0.1\n${tls}`;
  await writeFile(file, head + site.replace(`${PUBLIC_NAME} {\n`, sites));
  return running(program, ['run', '--adapter', 'caddyfile', '--config', file], port, folder);
}

/** @throws if the file doesn't contain the expected upstreams */
function withPorts(text: string, [first, second]: ProxyPlan['behind']): string {
  const edited = text.replaceAll('127.0.0.1:4319', first).replaceAll('127.0.0.1:4320', second);
  if (edited.includes(':43') || edited === text) throw new Error("the proxy's file contains unexpected ports");
  return edited;
}

async function running(program: string, args: string[], port: number, folder: string): Promise<RealProxy> {
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.on('data', (chunk) => {
    output = (output + chunk).slice(-4_000);
  });
  const isReady = () =>
    fetch(`https://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!(await isReady())) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${program} did not start: ${output}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    async stop() {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode === null && child.kill('SIGTERM')) await gone;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
