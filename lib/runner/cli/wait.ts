import { controlPath, HOOKS_CONTROL } from '../control-port/control-file';
import { listen } from '../control-port/listen';
import { ancestors } from '../mcp/ancestors';
import { agentCommand, interludeCommand } from '../shown-command.mjs';
import type { Command } from './command';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { readFlags, TEXT } from './flags';
import { openDataDir } from './local-server';

const HELP = `Usage: ${interludeCommand(['wait'])} [--for S]

For an agent in a terminal to start, in the background, before it comes to rest: waits for a message from the dashboard,
prints it and ends. Claude Code wakes when a background command ends, and reads what it printed. So an idle terminal can
be written to. Its companion has to run: ${interludeCommand(['runner', 'hooks'])}
The companion tells agents of this once, as they come to rest; that they may start it unasked, a permission says:
  Bash(${agentCommand(['wait'])})

  --for S   seconds to wait at most; default 3600

A message is handed over once: to this, or at the end of a running turn. What this was handed and has not printed is
given back.

Exit codes: 0 a message was printed, 1 failed, 2 usage, 124 the time is over and no message came.`;

const FOR_S = 3_600;
const LONGEST_S = 86_400;

export const command: Command = { help: HELP, run: wait };

async function wait(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { values, positionals } = readFlags('wait', argv, { for: TEXT }, env);
  if (positionals.length > 0) throw usageError('it takes options only', 'wait');
  const seconds = Number(values.for ?? FOR_S);
  if (!(seconds > 0 && seconds <= LONGEST_S)) {
    throw usageError(`--for is a number of seconds, at most ${LONGEST_S}`, 'wait');
  }
  const parent = process.ppid;
  const listened = await listen({
    controlFile: env.INTERLUDE_CONTROL ?? controlPath(openDataDir(env), env.INTERLUDE_CONTROL_NAME ?? HOOKS_CONTROL),
    pids: await ancestors(),
    forMs: seconds * 1_000,
    show: (text) => new Promise((shown) => process.stdout.write(`${text}\n`, () => shown())),
    isWanted: () => process.ppid === parent,
  });
  if (listened.kind === 'failed') throw new CliError(EXIT.failed, `no message can be waited for: ${listened.reason}`);
  if (listened.kind === 'shown') return EXIT.done;
  process.stdout.write('No message came in this time. Start this again only if you still want to be reached.\n');
  return EXIT.nothingCame;
}
