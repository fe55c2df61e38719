/** workerd, the Workers runtime, for tests of the handlers. The 160 MB package isn't a dependency of Interlude. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureProgram } from './programs.mjs';

const VERSION = '1.20261117.1';
/**
 * Compatibility dates. No Node modules, which would need a flag. The `strict` date forbids a request to await another
 * request's work; later dates tolerate it.
 */
const RULES = { today: '2026-11-01', strict: '2024-09-23' };
/** Platform names in workerd's packages. */
const PLATFORM = process.platform === 'win32' ? 'windows' : process.platform;
const ARCHITECTURE = process.arch === 'x64' ? '64' : process.arch;

/** @returns {{ program: string } | { missing: string }} the program's path, or why it is missing */
export function ensureWorkerd() {
  return ensureProgram({
    what: 'workerd',
    name: `@cloudflare/workerd-${PLATFORM}-${ARCHITECTURE}`,
    version: VERSION,
    file: join('bin', process.platform === 'win32' ? 'workerd.exe' : 'workerd'),
    folder: 'interlude-workerd',
  });
}

/**
 * Runs a worker on a port of 127.0.0.1. It can reach only local addresses.
 *
 * @param {Uint8Array} code
 * @param {Record<string, string>} env the worker's bindings
 * @param {keyof typeof RULES} rules
 * @returns {Promise<{ url: string, readonly said: string, stop(): Promise<void> }>} `said` is workerd's error output
 */
export async function startWorkerd(code, env, rules) {
  const found = ensureWorkerd();
  if ('missing' in found) throw new Error(found.missing);
  const folder = await mkdtemp(join(tmpdir(), 'interlude-workerd-'));
  await writeFile(join(folder, 'worker.js'), code);
  await writeFile(join(folder, 'config.capnp'), configOf(Object.keys(env), RULES[rules]));
  const args = ['serve', 'config.capnp', '--control-fd=3', '--verbose'];
  /** @type {import('node:child_process').SpawnOptions} */
  const options = { cwd: folder, env: { ...env, NODE_ENV: 'production' }, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] };
  const child = spawn(found.program, args, options);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      said = (said + chunk).slice(-20_000);
    });
  }
  const gone = new Promise((resolve) => child.once('exit', resolve));
  const port = await new Promise((resolve, reject) => {
    let told = '';
    child.stdio[3]?.on('data', (chunk) => {
      told += chunk;
      const listening = /"port":(\d+)/.exec(told);
      if (listening !== null) resolve(Number(listening[1]));
    });
    void gone.then(() => reject(new Error(`workerd did not start: ${said}`)));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    get said() {
      return said;
    },
    async stop() {
      child.kill('SIGTERM');
      await gone;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * @param {string[]} names of the variables
 * @param {string} day
 */
function configOf(names, day) {
  const bindings = names.map((name) => `(name = "${name}", fromEnvironment = "${name}")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "machine", network = (allow = ["private"]))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "${day}",
  globalOutbound = "machine",
  bindings = [${bindings.join(', ')}],
);
`;
}
