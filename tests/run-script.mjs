import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { root } from '../lib/launch/paths.mjs';

/**
 * Runs Node scripts in their own process groups and measures the CPU time of all their processes.
 *
 * The shell's `times` covers processes that were waited for, which excludes browsers. Polling /proc misses processes
 * that start and end between two polls. The larger value counts.
 */
const POLL_MS = 1_000;

/** CPU ticks (hundredths of a second) by process id, by the running program. @type {Map<Child, Map<number, number>>} */
const running = new Map();

/** @typedef {import('node:child_process').ChildProcess} Child */

/** @type {NodeJS.Timeout | undefined} */
let polling;

/**
 * Runs a Node script. Its child processes end with it.
 *
 * @param {readonly string[]} args script and arguments
 * @param {{ env?: Record<string, string>, limitMs: number, onLine: (line: string) => void }} options `limitMs`: kills
 *   the script after this time and reports it through `onLine`; `onLine`: each line of stdout and stderr
 * @returns {Promise<{ isSuccess: boolean, cpuSeconds: number }>}
 */
export function runScript(args, { env = {}, limitMs, onLine }) {
  return new Promise((resolve) => {
    const isWindows = process.platform === 'win32';
    const shell = ['-c', '"$@"; s=$?; times >&3; exit $s', 'sh', process.execPath];
    const child = spawn(isWindows ? process.execPath : 'sh', [...(isWindows ? [] : shell), ...args], {
      ...{ cwd: root, env: { ...process.env, ...env }, detached: true },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    running.set(child, new Map());
    if (process.platform === 'linux') polling ??= setInterval(poll, POLL_MS);
    for (const stream of [child.stdout, child.stderr]) if (stream) createInterface(stream).on('line', onLine);
    let times = '';
    child.stdio[3]?.on('data', (chunk) => {
      times += chunk;
    });
    let isLate = false;
    const limit = setTimeout(() => {
      isLate = true;
      onLine(`killed after ${limitMs / 1_000} s`);
      endGroup(child);
    }, limitMs);
    const settle = (/** @type {boolean} */ isSuccess) => {
      clearTimeout(limit);
      const polled = [...(running.get(child)?.values() ?? [])].reduce((sum, ticks) => sum + ticks, 0) / 100;
      running.delete(child);
      if (running.size === 0) polling = void clearInterval(polling);
      endGroup(child);
      resolve({ isSuccess, cpuSeconds: Math.max(polled, childSeconds(times)) });
    };
    // Orphaned processes would keep the pipes open.
    child.once('exit', () => endGroup(child));
    child.once('close', (code) => settle(code === 0 && !isLate));
    child.once('error', () => settle(false));
  });
}

/** Kills every running program. */
export function endAll() {
  for (const child of running.keys()) endGroup(child);
}

/** @param {Child} child */
function endGroup(child) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // every process of the group has exited
  }
}

/**
 * CPU seconds of the shell's children, from the second line of `times`: "1m2.3s 0m4.5s".
 *
 * @param {string} times
 */
function childSeconds(times) {
  const parts = [...(times.trim().split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  return parts.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0);
}

/** Adds the CPU time of each running program and its descendants. */
function poll() {
  const processes = readdirSync('/proc').flatMap((entry) => (/^\d+$/.test(entry) ? statOf(entry) : []));
  for (const [child, ticks] of running) {
    for (const { pid, parent, used } of processes) {
      if (pid === child.pid || ticks.has(pid) || ticks.has(parent)) ticks.set(pid, used);
    }
  }
}

/** @param {string} pid */
function statOf(pid) {
  try {
    // The command's name may contain spaces. Fields 3 to 52 follow: 4 is the parent, 14 and 15 are CPU ticks.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return [{ pid: Number(pid), parent: Number(fields[1]), used: Number(fields[11]) + Number(fields[12]) }];
  } catch {
    // it has exited
    return [];
  }
}
