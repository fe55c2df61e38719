import { interludeCommand } from '@/lib/runner/shown-command.mjs';
import { CliError, EXIT, type ExitCode } from './exit';
import { RUNNER_CLAUDE_HELP, runnerClaude } from './runner-claude';
import { RUNNER_HOOKS_HELP, runnerHooks } from './runner-hooks';

/** `interlude runner <kind>`: one agent, or the agents of one machine, connected to the dashboard. */
interface RunnerKind {
  help: string;
  run: (argv: string[], env: Record<string, string | undefined>) => Promise<ExitCode>;
}

const KINDS: Record<string, RunnerKind> = {
  claude: { help: RUNNER_CLAUDE_HELP, run: runnerClaude },
  hooks: { help: RUNNER_HOOKS_HELP, run: runnerHooks },
};

export const RUNNER_HELP = Object.values(KINDS)
  .map(({ help }) => help)
  .join('\n\n');

export async function runner(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const [name, ...rest] = argv;
  const kind = name !== undefined && Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
  if (kind === undefined) {
    const kinds = Object.keys(KINDS).join(', ');
    const problem =
      name === undefined || name.startsWith('-') ? 'name the kind of agent' : `there is no runner for "${name}"`;
    throw new CliError(EXIT.usage, `${problem} (${kinds}); see "${interludeCommand(['runner', '--help'])}"`);
  }
  return await kind.run(rest, env);
}
