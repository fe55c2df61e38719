import { controlPath } from '../host/control-file';
import { interludeCommand, mcpCommands } from '../host/own-program.mjs';
import { TOOLS_TICKET, TOOLS_URL } from '../mcp/agent-tools';
import { ancestors, forwardCalls, type RunnerPort, runnerPortAt, runnerPortsIn } from '../mcp/forward-call';
import { serveOverStdio } from '../mcp/mcp-server';
import type { Command } from './command';
import { EXIT, type ExitCode, readFlags, usageError } from './command';
import { openDataDir } from './dashboard';

const HELP = `Usage: ${interludeCommand(['mcp'])}

Serves MCP on stdin and stdout to the agent that starts it, with three tools:

  report_status      report working, idle, complete or failure, with a summary
  list_obligations   list the messages that wait for a reply from the agent
  reply              answer one of them

Forwards each call to the runner on this machine that follows the agent, found by its process and the call itself.
Refuses a call whose session is not certain.

Agents started by Interlude (${interludeCommand(['runner', 'claude'])}, or runner acp) already have the tools. For others,
run one of these once:

${Object.entries(mcpCommands())
  .map(([agent, line]) => `  ${agent}\n    ${line}\n`)
  .join('')}
Exit codes: 0 closed by the agent, 1 failed, 2 usage.`;

export const command: Command = { help: HELP, run: mcp };

async function mcp(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { positionals } = readFlags('mcp', argv, {}, env);
  if (positionals.length > 0) throw usageError('this command takes no arguments', 'mcp');
  if (process.stdin.isTTY) throw usageError('agents start this command; do not run it in a terminal', 'mcp');
  await serveOverStdio(forwardCalls(runnerPortsFor(env), await ancestors()));
  return EXIT.done;
}

/** The runner that the environment names, if a runner started the agent; else all runners of this machine. */
function runnerPortsFor(env: Record<string, string | undefined>): () => Promise<RunnerPort[]> {
  const { [TOOLS_URL]: url, [TOOLS_TICKET]: ticket, INTERLUDE_CONTROL: file, INTERLUDE_CONTROL_NAME: name } = env;
  if (url && ticket) return async () => [{ url, secret: ticket }];
  if (file) return () => runnerPortAt(file);
  const dataDir = openDataDir(env);
  return name ? () => runnerPortAt(controlPath(dataDir, name)) : () => runnerPortsIn(dataDir);
}
