import { randomUUID } from 'node:crypto';
import { homedir, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { redactOutput } from '@interlude/protocol/redaction/redacted-text';

import { CliError, EXIT, TOKEN_HELP } from '../../cli/command';
import { interludeCommand } from '../../host/own-program.mjs';
import { agentIdOf, exists, folderOf, isInstalled, onThisMachine, type RunnerKind } from '../runner-kind';
import { connectSocket, probeSocket, spawnAppServer } from './app-server';
import { CodexSource, type OwnThread } from './codex-source';
import { ThreadStore } from './thread-store';

const POLICIES = ['untrusted', 'on-request', 'never'];
const SANDBOXES = ['read-only', 'workspace-write', 'danger-full-access'];

const HELP = `Usage: ${interludeCommand(['runner', 'codex'])} [options]

Connects Codex to the dashboard. A Codex in one of your terminals is found by its socket; each of its threads is a session,
and the terminal works as before. If none runs, or with --start, the runner starts a Codex for one thread.

  --socket PATH           socket to connect to; default: the one below CODEX_HOME (~/.codex)
  --start                 start a Codex even if one runs
  --command PATH          program to start; default: codex
  --session ID            session of the started thread; continued if this agent has run it before
  --resume THREAD         thread to continue in the started Codex
  --prompt TEXT           first message of the started thread, sent once per session and text
  --cwd DIR               working folder; default: this one
  --model M               model; default: Codex's
  --approval-policy P     ${POLICIES.join(', ')}; default: Codex's
  --sandbox MODE          ${SANDBOXES.join(', ')}; default: Codex's
  --agent ID              appear as this agent; default: from the machine, or the folder
  --record FILE           record the traffic with Codex for "replay", without secrets
  --end-within S          seconds to wait for a started Codex after Ctrl-C; default 30
  --url URL               dashboard; default: INTERLUDE_URL, or the one on this machine
  --token-file F          ${TOKEN_HELP}

Codex never notifies its model of the end of a background command. Interlude shows the end, and wakes the agent with the
result if you want, once or by a rule.
INTERLUDE_WORKSPACE ({"mode":…,"deps":…,"symlinks":[…]}) names links into a main checkout; a started thread gets them with its first
message.
Ctrl-C does not affect a Codex in your terminal, and lets a started one finish its current step; press it again to stop
immediately. Records that have not reached the dashboard are sent by the next run.

Exit codes: 0 ended, 1 failed, 2 usage, 3 Codex is not installed.`;

/** Options that apply only to a Codex that the runner starts. */
const START_OPTIONS = ['command', 'session', 'prompt', 'resume', 'cwd', 'model', 'approval-policy', 'sandbox'];

export const kind: RunnerKind = {
  features: {
    turns: true,
    betweenRun: true,
    cause: { partly: 'A turn that another client started without a message is shown without a cause.' },
    tasks: { partly: 'A command counts as a background task only once its turn has ended.' },
    taskEnds: true,
    taskOutput: true,
    subagents: true,
    permissions: true,
    questions: true,
    messages: true,
    attachments: {
      partly:
        'Codex accepts images. Other files are named in the message, and Codex reads them from the runner’s disk.',
    },
    interrupt: { partly: 'A command that runs when its turn is interrupted continues in the background.' },
    end: { partly: 'If Codex runs in your own terminal, end its sessions there.' },
    stop: true,
    wake: true,
    plans: true,
    edits: true,
    catchUp: {
      partly: 'A thread is shown from the turn that runs when it is first seen; later gaps are filled.',
    },
    shared: true,
  },
  help: HELP,
  acceptsPrompt: true,
  flags: ['socket', 'command', 'resume', 'cwd', 'model', 'approval-policy', 'sandbox', 'end-within'],
  switches: ['start'],
  async prepare({ flag, has, seconds, usage, env }) {
    oneOf(flag('approval-policy'), POLICIES, '--approval-policy', usage);
    oneOf(flag('sandbox'), SANDBOXES, '--sandbox', usage);
    if (has('start') && flag('socket') !== undefined) throw usage('use either --start or --socket, not both');
    const endWithinMs = seconds('end-within', 30, 3_600);
    const socket = resolve(flag('socket') ?? join(codexHome(env), 'app-server-control', 'app-server-control.sock'));
    const isShared = !has('start') && (flag('socket') !== undefined || (!needsStart(flag) && (await exists(socket))));
    const startOption = isShared ? START_OPTIONS.find((name) => flag(name) !== undefined) : undefined;
    if (startOption !== undefined)
      throw usage(`--${startOption} applies only to a Codex that the runner starts; omit --socket`);
    const cwd = await folderOf(flag('cwd') ?? '.');
    const shared = { source: 'app-server-socket', host: hostname(), agentGoesOn: true };
    const program = { command: flag('command') ?? 'codex', cwd, env };
    if (!isShared && !(await isInstalled(program.command, cwd, env))) {
      const next = 'install it (npm install -g @openai/codex), or name it with --command';
      throw new CliError(EXIT.notInstalled, `no Codex is running, and ${program.command} was not found; ${next}`);
    }
    const model = flag('model');
    return {
      about: { kind: 'codex', ...(isShared ? shared : { source: 'app-server', ...(model ? { model } : {}) }) },
      agentId: isShared ? onThisMachine('codex') : agentIdOf(cwd),
      matches: async (outbox) => {
        const known = [...(await ThreadStore.read(outbox))];
        return known.some(([id, { sessionId }]) => sessionId === flag('session') || id === flag('resume'));
      },
      callers: { by: 'call', client: /^codex/i, ...(isShared ? { listensAt: socket } : {}) },
      endWithinMs: isShared ? 0 : endWithinMs,
      async open({ agentId, outbox, logger, record, workspaceNote }) {
        const verb = isShared && (await exists(socket)) ? 'follows' : 'waits for';
        const resume = flag('resume');
        const known = (await ThreadStore.read(outbox)).get(resume ?? '')?.sessionId;
        const own: OwnThread | null = isShared
          ? null
          : {
              sessionId: flag('session') ?? known ?? resume ?? randomUUID(),
              cwd,
              resume,
              workspaceNote,
              params: defined({ model, approvalPolicy: flag('approval-policy'), sandbox: flag('sandbox') }),
            };
        const redact = (piece: string) => redactOutput(logger.redactor, { behind: '', piece, ahead: '' });
        return {
          source: (context) =>
            new CodexSource({
              ...{ context, own, record, redact },
              open: (listener) => (isShared ? connectSocket(socket, listener) : spawnAppServer(program, listener)),
              reach: () => probeSocket(socket),
            }),
          ...(own === null
            ? { greeting: `${agentId} ${verb} the Codex that listens on ${socket}; Ctrl-C ends it` }
            : { sessionId: own.sessionId }),
        };
      },
    };
  },
};

/** True if an option needs a started Codex. */
function needsStart(flag: (name: string) => string | undefined): boolean {
  return START_OPTIONS.some((name) => flag(name) !== undefined);
}

function codexHome(env: Record<string, string | undefined>): string {
  return env.CODEX_HOME || join(env.HOME || homedir(), '.codex');
}

function oneOf(value: string | undefined, values: readonly string[], name: string, usage: (problem: string) => Error) {
  if (value !== undefined && !values.includes(value)) throw usage(`${name} must be one of ${values.join(', ')}`);
}

function defined(params: Record<string, string | undefined>): object {
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
}
