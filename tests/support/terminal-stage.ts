import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fieldsOf } from '@interlude/protocol/fields';
import type { ModelScript } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { MARK } from '@interlude/runner/host/process-lookup';
import {
  type ClaudeQuery,
  loadClaudeSdk,
  type PermissionResult,
  type QueryOptions,
  type UserMessage,
} from '@interlude/runner/sources/claude/claude-sdk';
import { onTestFinished } from 'vitest';
import { claudeHome, killSession } from './claude-stage';
import { type CliRun, runCli, startCli } from './cli';
import type { LiveServer } from './live-server';
import { Operator } from './operator';

/**
 * The real Claude Code as run by a user, with Interlude's hooks in its settings and the companion. Nothing drives it:
 * the dashboard knows only what hooks and transcript report.
 */
export interface TerminalStage {
  /** The project folder. */
  cwd: string;
  operator: Operator;
  /** The background command with which an idle agent waits for messages. */
  waitCommand: string;
  /** Types a prompt into Claude Code. */
  type(text: string): void;
  interrupt(): Promise<unknown>;
  stopTask(taskId: string): Promise<void>;
  /** Starts a companion, or restarts one after a kill. Resolves when it follows the terminals. */
  companion(): Promise<void>;
  /** SIGKILL for the companion. */
  killCompanion(): Promise<void>;
  /** Resolves when Claude Code itself has ended this many turns. */
  turnsEnded(count: number): Promise<void>;
  /** SIGKILL for Claude Code and its children. */
  killClaude(): Promise<void>;
  /** Exits Claude Code. */
  leave(): Promise<void>;
  problems(): string[];
}

const program = fileURLToPath(new URL('../../lib/launch/interlude.mjs', import.meta.url));

/** Answers permission requests at the terminal. Without it, Claude Code doesn't ask. */
type Permit = (tool: string, input: Record<string, unknown>) => Promise<PermissionResult>;

interface TerminalOptions {
  /** Gives Claude Code Interlude's tools. */
  hasTools?: true;
  /** Flags of the hook installation. */
  install?: string[];
  permit?: Permit;
}

export async function terminalStage(
  server: LiveServer,
  script: ModelScript,
  more: Permit | TerminalOptions = {},
): Promise<TerminalStage> {
  const { hasTools = false, install = [], permit } = typeof more === 'function' ? { permit: more } : more;
  const { cwd, config, claudeEnv, runnerEnv, problems, remove } = await claudeHome(server, script);
  const sessionId = randomUUID();
  const typed = new PromptQueue();
  let beside: CliRun | null = null;
  let query: ClaudeQuery | null = null;
  let left: Promise<void> = Promise.resolve();

  async function companion() {
    const started = startCli(['runner', 'hooks', '--agent', `terminal-${sessionId.slice(0, 8)}`], runnerEnv);
    beside = started;
    await new Promise<void>((resolve, reject) => {
      started.process.stderr?.on('data', (chunk) => `${chunk}`.includes('follows the terminals') && resolve());
      void started.ended.then((end) => reject(new Error(`the companion exited: ${JSON.stringify(end)}`)));
    });
  }

  async function killCompanion() {
    beside?.process.kill('SIGKILL');
    await beside?.ended;
  }

  async function killClaude() {
    await killSession(sessionId);
    await left;
  }

  async function leave() {
    typed.close();
    query?.close();
    await left;
  }

  onTestFinished(async () => {
    await leave();
    await killCompanion();
    await killClaude();
    await remove();
  });

  const settings = join(config, 'settings.json');
  const installed = await runCli(['hooks', 'install', '--settings', settings, ...install], runnerEnv);
  if (installed.exitCode !== 0) throw new Error(installed.stderr);
  if (hasTools) {
    // As written by `claude mcp add`.
    const server = { type: 'stdio', command: process.execPath, args: [program, 'mcp'], env: runnerEnv };
    await writeFile(join(config, '.claude.json'), JSON.stringify({ mcpServers: { interlude: server } }));
  }
  await companion();
  const { sdk } = (await loadClaudeSdk(runnerEnv.INTERLUDE_DATA_DIR ?? '', process.env.INTERLUDE_CLAUDE_SDK_DIR)) ?? {};
  if (sdk === undefined) throw new Error('the Agent SDK is not installed. Run "npm run test:agents".');
  const asking: Partial<QueryOptions> = permit
    ? { permissionMode: 'default', canUseTool: permit }
    : { permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true };
  const options: Omit<QueryOptions, 'spawnClaudeCodeProcess'> = {
    cwd,
    env: { PATH: process.env.PATH, ...claudeEnv, [MARK]: sessionId },
    model: 'claude-sonnet-4-5',
    settingSources: ['user'],
    systemPrompt: { type: 'preset', preset: 'claude_code' },
    includePartialMessages: true,
    perTaskStopAffordance: true,
    sessionId,
    ...asking,
  };
  // Without this option the SDK starts the process itself.
  const running = sdk.query({ prompt: typed.messages(), options: options as QueryOptions });
  query = running;
  const ended = new TurnCounter();
  left = drain(running, ended);

  return {
    cwd,
    operator: new Operator(server, sessionId),
    waitCommand: `INTERLUDE_DATA_DIR=${runnerEnv.INTERLUDE_DATA_DIR} ${process.execPath} ${program} wait`,
    type: (text) => typed.push(text),
    interrupt: () => running.interrupt(),
    stopTask: (taskId) => running.stopTask(taskId),
    companion,
    killCompanion,
    turnsEnded: (count) => ended.reach(count),
    killClaude,
    leave,
    problems,
  };
}

/** A query closed mid-turn ends with an error. Earlier failures show in the transcript. */
async function drain(query: ClaudeQuery, ended: TurnCounter): Promise<void> {
  try {
    // Counts turns independently of the dashboard, which has only the hooks.
    for await (const message of query) if (fieldsOf(message).type === 'result') ended.add();
  } catch {
    // closed
  }
}

class TurnCounter {
  #count = 0;
  #waiting: { count: number; resolve: () => void }[] = [];

  add(): void {
    this.#count += 1;
    for (const { count, resolve } of this.#waiting) if (count <= this.#count) resolve();
  }

  reach(count: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#count >= count) resolve();
      else this.#waiting.push({ count, resolve });
    });
  }
}

class PromptQueue {
  #waiting: string[] = [];
  #wake = () => {};
  #closed = false;

  push(text: string): void {
    this.#waiting.push(text);
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  async *messages(): AsyncGenerator<UserMessage> {
    while (!this.#closed) {
      const text = this.#waiting.shift();
      if (text === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      const message = { role: 'user' as const, content: [{ type: 'text' as const, text }] };
      yield { type: 'user', message, parent_tool_use_id: null, uuid: randomUUID() };
    }
  }
}
