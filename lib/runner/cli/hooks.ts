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

Connects the Claude Code sessions of your terminals. Their hooks report to a companion, which must be running:
  ${interludeCommand(['runner', 'hooks'])}
Adds and removes only Interlude's own entries, and keeps a backup of the settings file beside it until "uninstall".

  --settings FILE     change this file; default: settings.json in CLAUDE_CONFIG_DIR, else in ~/.claude
  --permissions       allow answering permissions, questions and plans in the dashboard too, until the terminal answers
  --answer-within S   with --permissions: wait this many seconds for the dashboard; default 600

Restart running sessions to apply the hooks.

Exit codes: 0 done, 1 failed (the file is unchanged), 2 usage.`;

type Environment = Record<string, string | undefined>;

const ANSWER_WITHIN_S = 600;
const MAX_WITHIN_S = 3_600;

const script = fileURLToPath(new URL('../hooks/hook.sh', import.meta.url));

export const command: Command = { help: HELP, run: hooks };

async function hooks(argv: string[], env: Environment): Promise<ExitCode> {
  const { action, settings, permissionsWithinS } = readOptions(argv, env);
  const home = openDataDir(env);
  const entries = hookEntries(script, home, permissionsWithinS);
  try {
    const change = action === 'install' ? installHooks : uninstallHooks;
    const outcome = await change(settings, entries);
    const done = action === 'install' ? 'installed the hooks in' : 'removed the hooks from';
    const same = action === 'install' ? 'the hooks are already installed in' : 'no Interlude hooks found in';
    process.stdout.write(`${outcome === 'changed' ? done : same} ${settings}\n`);
    if (action === 'install') {
      const companion = interludeCommand(['runner', 'hooks']);
      process.stdout.write(
        `start the companion and leave it running, then start Claude Code in any terminal:\n  ${companion}\n` +
          `to add tools for status reports and replies, run once:\n  ${mcpAddCommand()}\n`,
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
  /** Null: answer permissions in the terminal only. */
  permissionsWithinS: number | null;
}

function readOptions(argv: string[], env: Environment): HooksOptions {
  const flags = { settings: TEXT, permissions: SWITCH, 'answer-within': TEXT };
  const { values, positionals } = readFlags('hooks', argv, flags, env);
  const [action, ...more] = positionals;
  if ((action !== 'install' && action !== 'uninstall') || more.length > 0) {
    throw usageError('use install or uninstall', 'hooks');
  }
  const { permissions: isForPermissions = false, 'answer-within': within } = values;
  if (action === 'uninstall' && isForPermissions) throw usageError('--permissions works only with install', 'hooks');
  if (within !== undefined && !isForPermissions)
    throw usageError('--answer-within works only with --permissions', 'hooks');
  const seconds = Number(within ?? ANSWER_WITHIN_S);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > MAX_WITHIN_S) {
    throw usageError(`--answer-within must be a whole number of seconds, 1 to ${MAX_WITHIN_S}`, 'hooks');
  }
  const folder = env.CLAUDE_CONFIG_DIR ?? join(env.HOME ?? homedir(), '.claude');
  const settings = resolve(values.settings ?? join(folder, 'settings.json'));
  return { action, settings, permissionsWithinS: isForPermissions ? seconds : null };
}
