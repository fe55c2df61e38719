import type { ChildProcess } from 'node:child_process';
import { seenText } from '@interlude/protocol/redaction/redact-output';
import { AgentProcess, agentEnvironment, exitText, JsonLines } from '../../host/agent-process';
import type { CodexLink, LinkListener } from './codex-link';

export interface CodexProgram {
  command: string;
  cwd: string;
  env: Record<string, string | undefined>;
}

/**
 * `codex app-server` as a child: one message a line.
 *
 * Failure: a line that is none is told and passed over. Writing to a child that is gone does nothing; its end is told by
 * `ended`.
 */
export function openProcess({ command, cwd, env }: CodexProgram, listener: LinkListener): CodexLink {
  const signal = new AbortController();
  const request = { command, args: ['app-server'], cwd, env: agentEnvironment(env), signal: signal.signal };
  const agent = new AgentProcess(request, (text) => listener.onStderr(text));
  const { child } = agent;
  const lines = new JsonLines({
    onValue: (value) => listener.onMessage(value),
    onUnreadable: (why, line) => listener.onTrouble(`Codex wrote a line that is ${why}: ${line}`),
  });
  child.stdout.on('data', (chunk: Buffer) => lines.write(chunk)).on('end', () => lines.end());
  child.stdin.on('error', () => undefined);
  child.stdout.on('error', () => undefined);
  return {
    pid: agent.pid,
    send: (message) => void (child.stdin.writable && child.stdin.write(`${JSON.stringify(message)}\n`)),
    close: () => child.stdin.end(),
    kill: () => killGroup(child),
    ended: agent.exited.then((exit) => ({
      // What it logs is coloured, and says nothing about a signal.
      reason: seenText(exitText(exit.signal === null ? exit : { ...exit, lastWords: null })),
      exitCode: exit.exitCode,
      signal: exit.signal,
      isServerGone: true,
    })),
  };
}

/** The program that npm installs is a script, and the server a child of it. */
function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined && process.platform !== 'win32') process.kill(-child.pid, 'SIGKILL');
    else child.kill('SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}
