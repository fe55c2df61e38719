import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hookCommand, SettingsError } from '@/lib/runner/hooks/hook-entries';
import { installHooks, uninstallHooks } from '@/lib/runner/hooks/settings-file';
import { interludeCommand, mcpAddCommand } from '@/lib/runner/shown-command.mjs';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { readFlags, TEXT } from './flags';
import { openDataDir } from './local-server';

export const HOOKS_HELP = `Usage: ${interludeCommand(['hooks'])} <install|uninstall> [--settings FILE]

Connects the Claude Code of your terminals: its hooks tell their companion what happens. Only Interlude's own entries are
added and removed; everything else in the file stays as it is, and a backup of it is kept beside it until "uninstall".
The companion, without which the hooks do nothing: ${interludeCommand(['runner', 'hooks'])}

  --settings FILE   default: settings.json in CLAUDE_CONFIG_DIR, else in ~/.claude

Sessions that are running already have to be restarted to take up the hooks.

Exit codes: 0 done, 1 failed (the file is left as it is), 2 usage.`;

type Environment = Record<string, string | undefined>;

const script = fileURLToPath(new URL('../hooks/hook.sh', import.meta.url));

export async function hooks(argv: string[], env: Environment): Promise<ExitCode> {
  const { action, settings } = readOptions(argv, env);
  const home = openDataDir(env);
  const command = (event: string) => hookCommand(script, event, home);
  try {
    const change = action === 'install' ? installHooks : uninstallHooks;
    const outcome = await change(settings, command);
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

function readOptions(argv: string[], env: Environment): { action: 'install' | 'uninstall'; settings: string } {
  const { values, positionals } = readFlags('hooks', argv, { settings: TEXT }, env);
  const [action, ...more] = positionals;
  if ((action !== 'install' && action !== 'uninstall') || more.length > 0) {
    throw usageError('say install or uninstall', 'hooks');
  }
  const folder = env.CLAUDE_CONFIG_DIR ?? join(env.HOME ?? homedir(), '.claude');
  return { action, settings: resolve(values.settings ?? join(folder, 'settings.json')) };
}
