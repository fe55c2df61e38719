import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { ClaudeHome } from './claude-home';
import { InTerminal } from './in-terminal';

/**
 * The real Claude Code as a person starts it, in a terminal: past the questions of its first start, and ready for a
 * prompt.
 */
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

/** Types a prompt and sends it. */
export async function prompt(terminal: InTerminal, text: string): Promise<void> {
  terminal.type(text);
  await terminal.shows(text);
  terminal.type('\r');
}
