import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hookEntries, SettingsError } from '../hooks/hook-entries';
import { installHooks, uninstallHooks } from '../hooks/settings-file';
import { interludeCommand, mcpAddCommand } from '../host/own-program.mjs';
import type { Command } from './command';
import { CliError, EXIT, type ExitCode, readFlags, SWITCH, TEXT, usageError } from './command';
import { openDataDir } from './dashboard';

const HELP = `Usage: ${interludeCommand(['hooks'])} <install|uninstall> [options]

Connects the Claude Code of your terminals: its hooks tell their companion what happens. Only Interlude's own entries are
added and removed; everything else in the file stays as it is, and a backup of it is kept beside it until "uninstall".
The companion, without which the hooks do nothing: ${interludeCommand(['runner', 'hooks'])}

  --settings FILE     default: settings.json in CLAUDE_CONFIG_DIR, else in ~/.claude
  --permissions       permissions, questions and plans of a terminal can be answered in the dashboard too, for as
                      long as the terminal asks and nobody has answered there; without it only in the terminal
  --answer-within S   with --permissions: seconds it waits for the dashboard; default 600. After that, and without a
                      companion, only the terminal asks

Sessions that are running already have to be restarted to take up the hooks.

Exit codes: 0 done, 1 failed (the file is left as it is), 2 usage.`;

type Environment = Record<string, string | undefined>;

const ANSWER_WITHIN_S = 600;
const LONGEST_S = 3_600;

const script = fileURLToPath(new URL('../hooks/hook.sh', import.meta.url));

export const command: Command = { help: HELP, run: hooks };

async function hooks(argv: string[], env: Environment): Promise<ExitCode> {
  const { action, settings, permissionsWithinS } = readOptions(argv, env);
  const home = openDataDir(env);
  const entries = hookEntries(script, home, permissionsWithinS);
  try {
    const change = action === 'install' ? installHooks : uninstallHooks;
    const outcome = await change(settings, entries);
    const done = action === 'install' ? 'the hooks are in' : 'the hooks are out of';
    const same = action === 'install' ? 'the hooks were in already:' : 'there were no hooks of ours in';
    process.stdout.write(`${outcome === 'changed' ? done : same} ${settings}\n`);
    if (action === 'install') {
      const companion = interludeCommand(['runner', 'hooks']);
      process.stdout.write(
        `start their companion and leave it running, then Claude Code in any terminal:\n  ${companion}\n` +
          `to let it report its status and answer messages with tools, once:\n  ${mcpAddCommand()}\n`,
      );
    }
    return EXIT.done;
  } catch (error) {
    if (error instanceof SettingsError) throw new CliError(EXIT.failed, error.message);
    throw error;
  }
}

interface HooksOptions {
  action: 'install' | 'uninstall';
  settings: string;
  /** Null: permissions stay in the terminal. */
  permissionsWithinS: number | null;
}

function readOptions(argv: string[], env: Environment): HooksOptions {
  const flags = { settings: TEXT, permissions: SWITCH, 'answer-within': TEXT };
  const { values, positionals } = readFlags('hooks', argv, flags, env);
  const [action, ...more] = positionals;
  if ((action !== 'install' && action !== 'uninstall') || more.length > 0) {
    throw usageError('say install or uninstall', 'hooks');
  }
  const { permissions: isForPermissions = false, 'answer-within': within } = values;
  if (action === 'uninstall' && isForPermissions) throw usageError('--permissions is for install', 'hooks');
  if (within !== undefined && !isForPermissions) throw usageError('--answer-within is for --permissions', 'hooks');
  const seconds = Number(within ?? ANSWER_WITHIN_S);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > LONGEST_S) {
    throw usageError(`--answer-within is a whole number of seconds, 1 to ${LONGEST_S}`, 'hooks');
  }
  const folder = env.CLAUDE_CONFIG_DIR ?? join(env.HOME ?? homedir(), '.claude');
  const settings = resolve(values.settings ?? join(folder, 'settings.json'));
  return { action, settings, permissionsWithinS: isForPermissions ? seconds : null };
}
