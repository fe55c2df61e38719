import { randomUUID } from 'node:crypto';
import { type ModelScript, type Step, step } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { onTestFinished } from 'vitest';
import { claudeHome } from './claude-home';
import { type CliRun, startCli } from './cli';
import { killMarked } from './kill-marked';
import type { LiveServer } from './live-server';
import { Operator } from './operator';

/**
 * The real Claude Code on the real runner, with a project, a home and a scripted model of its own. The dashboard is
 * the one given.
 */
export interface ClaudeStage {
  sessionId: string;
  agentId: string;
  /** The project. */
  cwd: string;
  operator: Operator;
  /** The newest runner. */
  readonly run: CliRun;
  /** Starts a runner, also after one that was killed. Resolves when it has said where the session is. */
  runner(...args: string[]): Promise<CliRun>;
  /** Ends it as Ctrl-C does. */
  end(): Promise<Awaited<CliRun['ended']>>;
  problems(): string[];
}

export function quick(blocks: Parameters<typeof step>[0], options: Parameters<typeof step>[1] = {}): Step {
  return step(blocks, { wait: 60, pace: 4_000, ...options });
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
    // What outlived a Claude Code that was killed is ours to end.
    await killMarked(sessionId);
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
        void started.ended.then((end) => reject(new Error(`the runner ended: ${JSON.stringify(end)}`)));
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
