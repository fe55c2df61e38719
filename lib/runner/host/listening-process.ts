import { execFile } from 'node:child_process';
import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { promisify } from 'node:util';
import { isLoopback } from './server-request';

/**
 * Finds the process behind an address of this machine: an agent's server that the runner has not started is known by
 * that. Linux says it in /proc, macOS by lsof.
 *
 * Failure: a server elsewhere, in a container or of another user is not found.
 */
const run = promisify(execFile);
const LSOF_MS = 3_000;

/**
 * @param pids processes to look among
 * @param address an http address, or the path of a Unix socket
 * @returns the place in `pids` of the first one that listens there; null if none does, or the system does not tell
 */
export async function listenerAmong(pids: readonly number[], address: string): Promise<number | null> {
  const port = portOf(address);
  if (pids.length === 0 || port === null) return null;
  const find = process.platform === 'linux' ? byProc : byLsof;
  const listening = await find(pids, address, port).catch(() => new Set<number>());
  const at = pids.findIndex((pid) => listening.has(pid));
  return at < 0 ? null : at;
}

/** @returns undefined for a path, null for an address on another machine */
function portOf(address: string): number | null | undefined {
  if (!/^https?:/.test(address)) return undefined;
  if (!isLoopback(address)) return null;
  const { port, protocol } = new URL(address);
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

type Find = (pids: readonly number[], address: string, port: number | undefined) => Promise<Set<number>>;

const byProc: Find = async (pids, address, port) => {
  const inodes = port === undefined ? await inodesAtPath(await realpath(address)) : await inodesAtPort(port);
  const holds = async (pid: number) => {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    const targets = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => '')));
    return targets.some((target) => inodes.has(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? ''));
  };
  const found = await Promise.all(pids.map(async (pid) => ((await holds(pid)) ? [pid] : [])));
  return new Set(found.flat());
};

const LISTENING_TCP = '0A';
/** SO_ACCEPTCON */
const LISTENING_UNIX = 0x10000;

/** @see proc_pid_net(5): `sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode` */
async function inodesAtPort(port: number): Promise<Set<string>> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  );
  const rows = tables.flatMap((table) => table.split('\n').map((line) => line.trim().split(/\s+/)));
  const isOurs = ([, local = '', , state]: string[]) =>
    state === LISTENING_TCP && Number.parseInt(local.split(':')[1] ?? '', 16) === port;
  return new Set(rows.filter(isOurs).flatMap((row) => row[9] ?? []));
}

/** @see proc_pid_net(5): `Num RefCount Protocol Flags Type St Inode Path` */
async function inodesAtPath(path: string): Promise<Set<string>> {
  const found = new Set<string>();
  for (const line of (await readFile('/proc/net/unix', 'utf8')).split('\n')) {
    const [, flags = '0', inode = '', at] = /^\S+ \S+ \S+ (\S+) \S+ \S+\s+(\d+)(?: (.*))?$/.exec(line) ?? [];
    const isListening = (Number.parseInt(flags, 16) & LISTENING_UNIX) !== 0;
    if (isListening && at !== undefined && (await realpath(at).catch(() => at)) === path) found.add(inode);
  }
  return found;
}

/** `-F` prints one field a line: `p4711` begins a process, `n…` is a name. */
export const byLsof: Find = async (pids, address, port) => {
  const what = port === undefined ? ['-U'] : ['-i', `TCP:${port}`, '-s', 'TCP:LISTEN', '-n', '-P'];
  const { stdout } = await run('lsof', ['-a', '-p', pids.join(','), ...what, '-F', 'pn'], { timeout: LSOF_MS });
  const found = new Set<number>();
  let pid = 0;
  for (const line of stdout.split('\n')) {
    if (line.startsWith('p')) pid = Number(line.slice(1));
    // Linux puts the type behind the path.
    else if (line.startsWith('n') && (port !== undefined || line.slice(1).split(' ')[0] === address)) found.add(pid);
  }
  return found;
};
