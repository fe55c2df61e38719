import { hostname } from 'node:os';
import { CliError, EXIT, TOKEN_HELP } from '../../cli/command';
import { controlPath, HOOKS_CONTROL, readControlFile } from '../../host/control-file';
import { interludeCommand } from '../../host/own-program.mjs';
import { onThisMachine, type RunnerKind } from '../runner-kind';
import { HooksSource } from './hooks-source';

const HELP = `Usage: ${interludeCommand(['runner', 'hooks'])} [options]

Mirrors the Claude Code sessions of this machine's terminals to the dashboard. Their hooks report to this process and do
nothing without it. Install the hooks once: ${interludeCommand(['hooks', 'install'])}

  --session ID         follow only this session of Claude Code; default: all
  --agent ID           appear as this agent; default: from the machine
  --no-offer           send agents no hint that they can listen for messages while idle
  --url URL            dashboard; default: INTERLUDE_URL, or the one on this machine
  --token-file F       ${TOKEN_HELP}

A message from the dashboard reaches the agent when its turn ends. An idle agent gets messages while it listens with a
command in the background. It gets a hint about that command when it first becomes idle, and again after a failed
delivery; each hint costs one model call. --no-offer disables the hint. About the command:
  ${interludeCommand(['wait', '--help'])}
Permissions, questions and plans can be answered in the dashboard if the hooks were installed with --permissions.
Interrupt in the terminal. At the end of a session the log has the share of tool calls that only gathered information
(signal context_ratio); INTERLUDE_CONTEXT_RATIO=off disables it.

Exit codes: 0 ended, 1 failed, 2 usage.`;

export const kind: RunnerKind = {
  features: {
    turns: true,
    betweenRun: true,
    cause: true,
    tasks: true,
    taskEnds: true,
    taskOutput: true,
    subagents: true,
    permissions: {
      partly:
        'Permissions and plans can be answered here if the hooks were installed with --permissions, otherwise in the terminal.',
    },
    questions: {
      partly:
        'Questions can be answered here if the hooks were installed with --permissions, otherwise in the terminal.',
    },
    messages: {
      partly: 'A message reaches a terminal when its turn ends, and an idle one while its agent listens.',
    },
    attachments: { no: 'Hooks deliver text only: attach images and files in the terminal.' },
    interrupt: { no: 'Interrupt a turn in the terminal.' },
    end: { no: 'End a session in the terminal (/exit).' },
    stop: { no: 'Stop tasks in the terminal (/tasks).' },
    wake: { needless: 'Claude Code wakes by itself when a background task ends.' },
    plans: true,
    edits: true,
    catchUp: true,
    shared: true,
  },
  help: HELP,
  switches: ['no-offer'],
  async prepare({ flag, has, usage, env, dataDir }) {
    if (flag('record') !== undefined)
      throw usage('Claude Code keeps its transcripts itself: nothing needs to be recorded');
    const controlFile = controlPath(dataDir, env.INTERLUDE_CONTROL_NAME ?? HOOKS_CONTROL);
    return {
      about: { kind: 'hooks', source: 'claude-terminal', host: hostname(), agentGoesOn: true },
      hasManySessions: true,
      agentId: onThisMachine('terminals'),
      isExclusive: true,
      controlFile,
      callers: { by: 'process', client: /^claude/i },
      endWithinMs: 0,
      async open({ agentId, logger }) {
        const other = await readControlFile(controlFile);
        if (other !== null && other.pid !== process.pid && (await answers(other.url))) {
          const problem = `another companion is running on this machine, as process ${other.pid}; stop it first`;
          throw new CliError(EXIT.failed, problem);
        }
        return {
          source: (context) =>
            HooksSource.open({
              ...{ context, sessionId: flag('session'), logger },
              offersToListen: !has('no-offer'),
            }),
          greeting: `${agentId} follows the terminals of this machine; Ctrl-C ends it`,
        };
      },
    };
  },
};

/** True if a process listens: a killed companion leaves a file with a closed port. */
async function answers(url: string): Promise<boolean> {
  return await fetch(url, { signal: AbortSignal.timeout(500) }).then(
    () => true,
    () => false,
  );
}
