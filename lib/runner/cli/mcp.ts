import { controlPath, HOOKS_CONTROL } from '@/lib/runner/control-port/control-file';
import { ancestors } from '@/lib/runner/mcp/ancestors';
import { forwardingTo } from '@/lib/runner/mcp/forward-call';
import { serveOverStdio } from '@/lib/runner/mcp/mcp-server';
import { interludeCommand, mcpAddCommand } from '@/lib/runner/shown-command.mjs';
import type { Command } from './command';
import { EXIT, type ExitCode, usageError } from './exit';
import { readFlags } from './flags';
import { openDataDir } from './local-server';

const HELP = `Usage: ${interludeCommand(['mcp'])}

An MCP server on stdin and stdout, which an agent starts for itself. It has three tools:

  report_status      says how the agent's work stands: working, idle, complete or failure, with a summary
  list_obligations   lists the messages that wait for a reply from the agent
  reply              answers one of them

It passes them on to the runner on this machine; to that of terminals: ${interludeCommand(['runner', 'hooks'])}
To give it to the Claude Code of your terminals, once: ${mcpAddCommand()}
An agent has the tools without it where this runs it: ${interludeCommand(['runner', 'claude'])}

Exit codes: 0 the agent has closed it, 1 failed, 2 usage.`;

export const command: Command = { help: HELP, run: mcp };

async function mcp(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { positionals } = readFlags('mcp', argv, {}, env);
  if (positionals.length > 0) throw usageError('it takes no arguments', 'mcp');
  if (process.stdin.isTTY) throw usageError('an agent starts this, not a person', 'mcp');
  const controlFile =
    env.INTERLUDE_CONTROL ?? controlPath(openDataDir(env), env.INTERLUDE_CONTROL_NAME ?? HOOKS_CONTROL);
  await serveOverStdio(forwardingTo(controlFile, await ancestors()));
  return EXIT.done;
}
