import { controlPath } from '../host/control-file';
import { interludeCommand, mcpLines } from '../host/own-program.mjs';
import { TOOLS_TICKET, TOOLS_URL } from '../mcp/agent-tools';
import { ancestors, type Door, doorAt, doorsIn, forwardingTo } from '../mcp/forward-call';
import { serveOverStdio } from '../mcp/mcp-server';
import type { Command } from './command';
import { EXIT, type ExitCode, readFlags, usageError } from './command';
import { openDataDir } from './dashboard';

const HELP = `Usage: ${interludeCommand(['mcp'])}

An MCP server on stdin and stdout, which an agent starts for itself. It has three tools:

  report_status      says how the agent's work stands: working, idle, complete or failure, with a summary
  list_obligations   lists the messages that wait for a reply from the agent
  reply              answers one of them

It passes each call on to the runner on this machine that follows the agent. The session is found by the processes above
this one and by the call as the runner sees it. If no session is certain, the call is refused.
Agents that Interlude starts have the tools already: ${interludeCommand(['runner', 'claude'])}, or runner acp.
For the others, run one of these commands once:

${Object.entries(mcpLines())
  .map(([agent, line]) => `  ${agent}\n    ${line}\n`)
  .join('')}
Exit codes: 0 the agent has closed it, 1 failed, 2 usage.`;

export const command: Command = { help: HELP, run: mcp };

async function mcp(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { positionals } = readFlags('mcp', argv, {}, env);
  if (positionals.length > 0) throw usageError('it takes no arguments', 'mcp');
  if (process.stdin.isTTY) throw usageError('an agent starts this, not a person', 'mcp');
  await serveOverStdio(forwardingTo(doorsFor(env), await ancestors()));
  return EXIT.done;
}

/** One runner where the environment names it, as in an agent that it has started; else all of this machine. */
function doorsFor(env: Record<string, string | undefined>): () => Promise<Door[]> {
  const { [TOOLS_URL]: url, [TOOLS_TICKET]: ticket, INTERLUDE_CONTROL: file, INTERLUDE_CONTROL_NAME: name } = env;
  if (url && ticket) return async () => [{ url, secret: ticket }];
  if (file) return () => doorAt(file);
  const dataDir = openDataDir(env);
  return name ? () => doorAt(controlPath(dataDir, name)) : () => doorsIn(dataDir);
}
