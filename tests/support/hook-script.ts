import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket, type Server as TcpServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hookCommand } from '@interlude/runner/hooks/hook-entries';
import { onTestFinished } from 'vitest';
import { tempDir } from './temp-dir';

export const HOOK_SCRIPT = fileURLToPath(new URL('../../lib/runner/hooks/hook.sh', import.meta.url));
export const HOOK_INPUT = {
  session_id: 's1',
  transcript_path: '/nowhere/s1.jsonl',
  prompt: 'hällo "there"\n\\ $(rm) \u2028',
};

export interface HookRun {
  child: ChildProcess;
  ended: Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }>;
}

/** Starts the hook as Claude Code does: through a shell, with JSON on stdin. */
export function startHook(
  dataDir: string,
  event: string,
  { env = {}, input = JSON.stringify(HOOK_INPUT) as string | null, withinS = null as number | null } = {},
): HookRun {
  const child = spawn(hookCommand(HOOK_SCRIPT, event, dataDir, withinS), {
    shell: '/bin/sh',
    detached: true,
    env: { PATH: process.env.PATH, ...env } as Record<string, string> as NodeJS.ProcessEnv,
  });
  const out = { stdout: '', stderr: '' };
  child.stdout?.on('data', (chunk) => (out.stdout += chunk));
  child.stderr?.on('data', (chunk) => (out.stderr += chunk));
  child.stdin?.on('error', () => undefined);
  if (input !== null) child.stdin?.end(input);
  const ended = new Promise<Awaited<HookRun['ended']>>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, ...out }));
  });
  return { child, ended };
}

/** Creates a PATH with the script's dependencies and these replacement programs. */
export async function pathWith(programs: Record<string, string>, without: string[] = []): Promise<string> {
  const folder = await tempDir();
  for (const name of ['sh', 'cat', 'curl', 'timeout', 'tr', 'sleep', 'env', 'kill', 'date']) {
    if (without.includes(name) || name in programs) continue;
    const found = spawnSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim();
    if (found.startsWith('/')) symlinkSync(found, join(folder, name));
  }
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

/** Listens on a port and sends `says` to each connection: nothing, a text, or an endless stream for `trickle`. */
export async function listenSending(says: string | undefined): Promise<{ url: string }> {
  const sockets = new Set<Socket>();
  const server: TcpServer = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    if (says === 'trickle') {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n');
      const timer = setInterval(() => socket.write('x'), 50);
      socket.on('close', () => clearInterval(timer));
    } else if (says !== undefined) socket.write(says);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
