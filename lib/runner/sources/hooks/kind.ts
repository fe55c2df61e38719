import { hostname } from 'node:os';
import { CliError, EXIT, SWITCH, TOKEN_HELP } from '../../cli/command';
import { controlPath, HOOKS_CONTROL, readControlFile } from '../../host/control-file';
import { interludeCommand } from '../../host/own-program.mjs';
import type { RunnerKind } from '../runner-kind';
import { HooksSource } from './hooks-source';

const HELP = `Usage: ${interludeCommand(['runner', 'hooks'])} [options]

Mirrors the Claude Code sessions in the terminals of this machine to the dashboard. Their hooks find it; this puts those
in place, once: ${interludeCommand(['hooks', 'install'])}
Without this process the hooks do nothing.

  --session ID         follow only this session of Claude Code; default: all of them
  --agent ID           the agent to appear as; default: made of the machine's name
  --no-offer           don't tell agents that they can listen for messages while they are idle
  --url URL            the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F       ${TOKEN_HELP}

A message from the dashboard reaches the agent when its running turn ends. An idle terminal takes one while its agent
listens, by a command that it runs in the background: it is told of that once, as it comes to rest, and again after a
message was refused for want of it. That costs one more call of the model; --no-offer leaves it out. More on the command:
  ${interludeCommand(['wait', '--help'])}
Permissions, questions and plans can be answered in the dashboard where the hooks were installed with --permissions.
Interrupts stay in the terminal. When a session ends, the log says how many of its tool calls only gathered (signal
context_ratio); INTERLUDE_CONTEXT_RATIO=off leaves that out.

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
    permissions: {
      partly:
        'Permissions and plans can be answered here where the hooks were installed with --permissions, else in the terminal.',
    },
    questions: {
      partly: 'Questions can be answered here where the hooks were installed with --permissions, else in the terminal.',
    },
    messages: {
      partly: 'A message reaches a terminal when its running turn ends; an idle one takes it while its agent listens.',
    },
    attachments: { no: 'A hook hands a terminal only text: attach images and files in the terminal.' },
    interrupt: { no: 'A turn is interrupted in the terminal.' },
    end: { no: 'A session is ended in the terminal (/exit).' },
    stop: { no: 'Tasks are stopped in the terminal (/tasks).' },
    wake: { needless: 'Claude Code wakes by itself when a background task ends.' },
    plans: true,
    edits: true,
    catchUp: true,
    shared: true,
  },
  help: HELP,
  flags: { 'no-offer': SWITCH },
  async prepare({ flag, has, usage, env, dataDir }) {
    if (flag('record') !== undefined)
      throw usage('Claude Code keeps its transcripts itself: nothing needs to be recorded');
    const controlFile = controlPath(dataDir, env.INTERLUDE_CONTROL_NAME ?? HOOKS_CONTROL);
    return {
      about: { kind: 'hooks', source: 'claude-terminal', host: hostname(), agentGoesOn: true },
      journal: 'hooks',
      carriesMany: true,
      meanwhile: 'the agent goes on',
      agentId: `terminals@${hostname().split('.')[0]}`,
      isAlone: true,
      controlFile: () => controlFile,
      callers: { by: 'process', client: /^claude/i },
      endWithinMs: 0,
      async open({ agentId, logger }) {
        const other = await readControlFile(controlFile);
        if (other !== null && other.pid !== process.pid && (await answers(other.url))) {
          const problem = `another companion is running on this machine, as process ${other.pid}; stop that one first`;
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

/** Whether a process listens: a killed companion leaves a file with a closed port. */
async function answers(url: string): Promise<boolean> {
  return await fetch(url, { signal: AbortSignal.timeout(500) }).then(
    () => true,
    () => false,
  );
}
