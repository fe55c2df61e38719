import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fieldsOf } from '@interlude/protocol/fields';
import type { ModelScript } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { MARK } from '@interlude/runner/host/agent-processes';
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
 * The real Claude Code as somebody runs it by himself, with Interlude's hooks installed in his settings and the
 * companion beside it. Nothing of ours drives it: the dashboard knows what the hooks and the transcript tell.
 */
export interface TerminalStage {
  /** The project folder. */
  cwd: string;
  operator: Operator;
  /** What an agent runs in the background to listen for messages while it is idle. */
  waitCommand: string;
  /** Types a prompt where Claude Code runs. */
  type(text: string): void;
  interrupt(): Promise<unknown>;
  stopTask(taskId: string): Promise<void>;
  /** Starts a companion, also after one that was killed. Resolves when it follows the terminals. */
  companion(): Promise<void>;
  /** Power off for the companion: no signal handler runs. */
  killCompanion(): Promise<void>;
  /** Resolves when Claude Code has ended so many turns, whoever else may know of it. */
  turnsEnded(count: number): Promise<void>;
  /** Power off for Claude Code and all it runs. */
  killClaude(): Promise<void>;
  /** Leaves Claude Code. */
  leave(): Promise<void>;
  problems(): string[];
}

const program = fileURLToPath(new URL('../../lib/launch/interlude.mjs', import.meta.url));

/** What the person there answers when Claude Code asks. Without it nothing is asked. */
export type Permit = (tool: string, input: Record<string, unknown>) => Promise<PermissionResult>;

export interface TerminalOptions {
  /** Claude Code has Interlude's tools. */
  hasTools?: true;
  /** How the hooks are installed. */
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
      void started.ended.then((end) => reject(new Error(`the companion ended: ${JSON.stringify(end)}`)));
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
    // As `claude mcp add` leaves it.
    const server = { type: 'stdio', command: process.execPath, args: [program, 'mcp'], env: runnerEnv };
    await writeFile(join(config, '.claude.json'), JSON.stringify({ mcpServers: { interlude: server } }));
  }
  await companion();
  const { sdk } = (await loadClaudeSdk(runnerEnv.INTERLUDE_DATA_DIR ?? '', process.env.INTERLUDE_CLAUDE_SDK_DIR)) ?? {};
  if (sdk === undefined) throw new Error('the Agent SDK is not installed; "npm run test:agents" installs it');
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
  // The SDK starts the process itself where nobody else does.
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

/** A query ends with an error when it is closed in mid-turn. What went wrong before shows in the transcript. */
async function drain(query: ClaudeQuery, ended: TurnCounter): Promise<void> {
  try {
    // Nobody else listens here: the dashboard has the hooks only.
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
