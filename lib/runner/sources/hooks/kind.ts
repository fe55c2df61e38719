import { hostname } from 'node:os';
import { CliError, EXIT } from '@/lib/runner/cli/exit';
import { controlPath, HOOKS_CONTROL, readControlFile } from '@/lib/runner/control-port/control-file';
import { interludeCommand } from '@/lib/runner/shown-command.mjs';
import type { RunnerKind } from '@/lib/runner/sources/runner-kind';
import { HooksSource } from './hooks-source';

const HELP = `Usage: ${interludeCommand(['runner', 'hooks'])} [options]

Mirrors the Claude Code sessions in the terminals of this machine to the dashboard. Their hooks find it; this puts those
in place, once: ${interludeCommand(['hooks', 'install'])}
Without this process the hooks do nothing.

  --session ID   follow only this session of Claude Code; default: all of them
  --agent ID     the agent to appear as; default: made of the machine's name
  --url URL      the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token T      its token; default: INTERLUDE_TOKEN, else the one of this machine

A message from the dashboard reaches the agent when its running turn ends; an idle terminal takes none. Permissions,
questions and interrupts stay in the terminal.

Exit codes: 0 ended, 1 failed, 2 usage.`;

export const kind: RunnerKind = {
  title: 'Claude Code in your terminals',
  features: {
    turns: true,
    betweenRun: true,
    cause: true,
    tasks: true,
    taskEnds: true,
    taskOutput: true,
    subagents: true,
    permissions: { no: 'Permissions are shown here and answered in the terminal.' },
    questions: { no: 'Questions are shown here and answered in the terminal.' },
    messages: { partly: 'A message reaches a terminal when its running turn ends; an idle terminal takes none.' },
    interrupt: { no: 'A turn is interrupted in the terminal.' },
    stop: { no: 'Tasks are stopped in the terminal (/tasks).' },
    wake: { no: 'Claude Code wakes by itself when a background task ends, and need not be woken.' },
    plans: true,
    edits: true,
    catchUp: true,
    shared: true,
  },
  help: HELP,
  async prepare({ flag, env, dataDir }) {
    const controlFile = controlPath(dataDir, env.INTERLUDE_CONTROL_NAME ?? HOOKS_CONTROL);
    return {
      about: { kind: 'hooks', source: 'claude-terminal', host: hostname(), agentGoesOn: true },
      meanwhile: 'the agent goes on',
      agentId: `terminals@${hostname().split('.')[0]}`,
      isAlone: true,
      controlFile: () => controlFile,
      endWithinMs: 0,
      async open({ agentId, logger }) {
        const other = await readControlFile(controlFile);
        if (other !== null && other.pid !== process.pid && (await answers(other.url))) {
          const problem = `another companion is running on this machine, as process ${other.pid}; stop that one first`;
          throw new CliError(EXIT.failed, problem);
        }
        return {
          source: (surroundings) => HooksSource.open({ surroundings, sessionId: flag('session'), logger }),
          greeting: `${agentId} follows the terminals of this machine; Ctrl-C ends it`,
        };
      },
    };
  },
};

/** Whether anything listens there: a file that a killed companion left behind names a port that is closed. */
async function answers(url: string): Promise<boolean> {
  return await fetch(url, { signal: AbortSignal.timeout(500) }).then(
    () => true,
    () => false,
  );
}
