import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  background,
  type Context,
  type ModelScript,
  type Step,
  say,
  startModel,
  step,
  turn,
} from '@interlude/runner/cli/demo/scripted-model.mjs';
import { markedProcesses } from '@interlude/runner/host/process-lookup';
import { onTestFinished } from 'vitest';
import { type CliRun, InTerminal, startCli } from './cli';
import type { LiveServer } from './live-server';
import { Operator } from './operator';

/** The real Claude Code on the real runner, with an isolated project and home and a scripted model. */
export interface ClaudeStage {
  sessionId: string;
  agentId: string;
  /** The project folder. */
  cwd: string;
  operator: Operator;
  /** The latest runner. */
  readonly run: CliRun;
  /** Starts a runner, or restarts one after a kill. Resolves when the runner prints the session's address. */
  runner(...args: string[]): Promise<CliRun>;
  /** Stops it as Ctrl-C does. */
  end(): Promise<Awaited<CliRun['ended']>>;
  problems(): string[];
}

export function quickStep(blocks: Parameters<typeof step>[0], options: Parameters<typeof step>[1] = {}): Step {
  return step(blocks, { wait: 60, pace: 4_000, ...options });
}

/** Reports each task notification as `Poll 2 exited with code 2`. */
export function reportExits({ notices }: Context): Step {
  const lines = notices.map(
    ({ summary }) => `${/"(.*?)"/.exec(summary)?.[1]} exited with code ${/exit code (\d+)/.exec(summary)?.[1]}`,
  );
  return quickStep([say(lines.join(' | '))]);
}

export async function claudeStage(server: LiveServer, script: ModelScript): Promise<ClaudeStage> {
  const { cwd, claudeEnv, runnerEnv, problems, remove } = await claudeHome(server, script);
  const sessionId = randomUUID();
  const agentId = `agent-${sessionId.slice(0, 8)}`;
  const env = { ...claudeEnv, ...runnerEnv };
  let run: CliRun | null = null;

  onTestFinished(async () => {
    if (run !== null && run.process.exitCode === null && run.process.signalCode === null) {
      run.process.kill('SIGINT');
      run.process.kill('SIGINT');
      await run.ended;
    }
    // Processes that outlive a killed Claude Code.
    await killSession(sessionId);
    await remove();
  });

  return {
    sessionId,
    agentId,
    cwd,
    operator: new Operator(server, sessionId),
    get run() {
      if (run === null) throw new Error('no runner was started');
      return run;
    },
    async runner(...args) {
      const given = ['--session', sessionId, '--agent', agentId, '--cwd', cwd, '--model', 'claude-sonnet-4-5'];
      const mode = args.includes('--permission-mode') ? [] : ['--permission-mode', 'bypassPermissions'];
      const started = startCli(['runner', 'claude', ...given, ...mode, ...args], env);
      run = started;
      await new Promise<void>((resolve, reject) => {
        started.process.stdout?.once('data', () => resolve());
        void started.ended.then((end) => reject(new Error(`the runner exited: ${JSON.stringify(end)}`)));
      });
      return started;
    },
    async end() {
      run?.process.kill('SIGINT');
      return await (run as CliRun).ended;
    },
    problems,
  };
}

/** An isolated project, home and scripted model for one Claude Code. */
interface ClaudeHome {
  /** The project folder. */
  cwd: string;
  /** Claude Code's configuration folder (settings and transcripts). */
  config: string;
  /** Claude Code's environment. */
  claudeEnv: Record<string, string>;
  /** The runner's environment. */
  runnerEnv: Record<string, string>;
  /** Model requests that match no scripted turn. */
  problems(): string[];
  remove(): Promise<void>;
}

export async function claudeHome(server: LiveServer, script: ModelScript): Promise<ClaudeHome> {
  const base = await mkdtemp(join(tmpdir(), 'interlude-agent-'));
  const folder = async (name: string) => {
    await mkdir(join(base, name));
    return join(base, name);
  };
  const cwd = await folder('project');
  const config = await folder('config');
  const model = await startModel(script, { cwd });
  return {
    cwd,
    config,
    claudeEnv: {
      HOME: await folder('home'),
      CLAUDE_CONFIG_DIR: config,
      TMPDIR: await folder('tmp'),
      SHELL: '/bin/bash',
      LANG: 'C.UTF-8',
      TERM: 'dumb',
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: 'sk-ant-scripted',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_ERROR_REPORTING: '1',
      IS_SANDBOX: '1',
    },
    runnerEnv: {
      INTERLUDE_DATA_DIR: join(base, 'interlude'),
      INTERLUDE_URL: server.url,
      INTERLUDE_TOKEN: server.token,
      INTERLUDE_CLAUDE_SDK_DIR: process.env.INTERLUDE_CLAUDE_SDK_DIR ?? '',
    },
    problems: () => model.problems(),
    async remove() {
      await model.close();
      await rm(base, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Starts the real Claude Code in a terminal, dismisses its first-start questions and waits for the prompt. */
export async function claudeInTerminal({ cwd, config, claudeEnv }: ClaudeHome): Promise<InTerminal> {
  const projects = { [cwd]: { hasTrustDialogAccepted: true } };
  const customApiKeyResponses = { approved: [claudeEnv.ANTHROPIC_API_KEY?.slice(-20)], rejected: [] };
  const known = { hasCompletedOnboarding: true, theme: 'dark', customApiKeyResponses, projects };
  await writeFile(join(config, '.claude.json'), JSON.stringify(known));
  const beside = `claude-agent-sdk-${process.platform}-${process.arch}`;
  const program = join(process.env.INTERLUDE_CLAUDE_SDK_DIR ?? '', 'node_modules', '@anthropic-ai', beside, 'claude');
  const env: Record<string, string | undefined> = { PATH: process.env.PATH, ...claudeEnv, TERM: 'xterm' };
  const terminal = new InTerminal([program, '--model', 'claude-sonnet-4-5'], env as NodeJS.ProcessEnv, cwd);
  onTestFinished(() => terminal.close());
  await terminal.shows('shortcuts');
  return terminal;
}

/** Types a prompt and submits it. */
export async function prompt(terminal: InTerminal, text: string): Promise<void> {
  terminal.type(text);
  await terminal.shows(text);
  terminal.type('\r');
}

/** Prefix of a background command that waits until `releaseTask`. */
export const WAIT_FOR_RELEASE = 'until [ -e go ]; do sleep 0.1; done; ';

/** A turn that starts a background poll, which exits with 3 after `releaseTask`. @param before blocks before the call */
export function startPoll(...before: Parameters<typeof step>[0]) {
  const poll = background(`${WAIT_FOR_RELEASE}exit 3`, 'Poll');
  return turn(/START/, quickStep([...before, poll]), quickStep([say('Started the poll.')]));
}

/** @param cwd the waiting commands' folder */
export async function releaseTask(cwd: string): Promise<void> {
  await writeFile(join(cwd, 'go'), '');
}

/** Sends SIGKILL to a session's Claude Code and all its children. */
export async function killSession(sessionId: string): Promise<void> {
  for (const { pid } of (await markedProcesses(sessionId)) ?? []) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // exited since it was listed
    }
  }
}
