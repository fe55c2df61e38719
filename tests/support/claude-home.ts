import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ModelScript, startModel } from '@interlude/runner/cli/demo/scripted-model.mjs';
import type { LiveServer } from './live-server';

/** Where one Claude Code lives: a project, a home and a scripted model of its own. */
export interface ClaudeHome {
  /** The project. */
  cwd: string;
  /** The folder of Claude Code's settings and transcripts. */
  config: string;
  /** What Claude Code is started with. */
  claudeEnv: Record<string, string>;
  /** What a runner needs to find the dashboard. */
  runnerEnv: Record<string, string>;
  /** What the script and the agent did not agree on. */
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
