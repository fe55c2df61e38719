import { randomUUID } from 'node:crypto';
import { basename, dirname, extname } from 'node:path';
import { CliError, EXIT, TOKEN_HELP } from '../../cli/command';
import { InFlightMessages } from '../../host/message-delivery';
import { interludeCommand } from '../../host/own-program.mjs';
import type { Outbox } from '../../outbox/outbox';
import {
  agentIdOf,
  assertOneSession,
  findSession,
  folderOf,
  isInstalled,
  type NamedSession,
  type RunnerKind,
} from '../runner-kind';
import { AcpSource } from './acp-source';
import { type AcpSession, readSessions } from './session-setup';

const HELP = `Usage: ${interludeCommand(['runner', 'acp'])} [options] -- <command…>

Runs an agent that speaks the Agent Client Protocol (ACP) on stdin and stdout, connects it to the dashboard, and prints the
address of the session. Messages from the dashboard reach the agent; its work during and between turns is shown there.

  ${interludeCommand(['runner', 'acp'])} -- gemini --acp
  ${interludeCommand(['runner', 'acp'])} -- opencode acp

  --session ID            run or continue this session; default: a new one
  --resume ID             continue a session by the dashboard's id or the agent's own
  --prompt TEXT           first message, sent once per session and text
  --agent ID              appear as this agent; default: from program, folder and machine
  --record FILE           record the traffic with the agent for "replay", without secrets
  --cwd DIR               working folder; default: this one
  --mode ID               one of the agent's modes
  --model ID              one of the agent's models
  --auth METHOD           one of the agent's sign-in methods; default: none, or its only API key
  --answer-within S       seconds to wait for the answer to a permission; default 600
  --end-within S          seconds to wait for the agent after Ctrl-C; default 30
  --url URL               dashboard; default: INTERLUDE_URL, or the one on this machine
  --token-file F          ${TOKEN_HELP}

The agent has this environment and obeys the settings of its working folder.
INTERLUDE_WORKSPACE ({"mode":…,"deps":…,"symlinks":[…]}) names links into a main checkout; the agent gets them with its first
message.
Ctrl-C lets the agent finish its current step; press it again to stop immediately. Records that have not reached the
dashboard are sent by the next run.

Exit codes: 0 ended, 1 failed, 2 usage, 3 the program is not installed.`;

const NO_WAKE = 'Only a message starts a turn in ACP.';

export const kind: RunnerKind = {
  acceptsCommand: true,
  acceptsPrompt: true,
  features: {
    turns: true,
    betweenRun: {
      partly:
        'Only some ACP agents start turns by themselves. If one doesn’t report the end, 10 s of silence count as the end.',
    },
    cause: { partly: 'Only claude-agent-acp and Qwen Code report which task woke them.' },
    tasks: { partly: 'ACP has no background tasks. They are shown for agents whose own messages Interlude knows.' },
    taskEnds: {
      partly:
        'Only claude-agent-acp, codex-acp, Qwen Code and Copilot report how a task ended. For Gemini CLI and Kimi Code the runner watches the process.',
    },
    taskOutput: {
      partly:
        'Output is shown for claude-agent-acp and Qwen Code only, which name the files that their commands write to.',
    },
    subagents: { partly: 'Only claude-agent-acp marks the work of its subagents; Copilot marks their tool calls.' },
    permissions: true,
    questions: { no: 'ACP has permissions, but no questions.' },
    messages: true,
    attachments: {
      partly:
        'Images can be attached if the agent supports them. Most files become links to the runner’s disk, which the agent reads itself.',
    },
    interrupt: true,
    end: true,
    stop: { partly: 'Only claude-agent-acp and codex-acp can stop a single background command.' },
    wake: { no: NO_WAKE },
    plans: true,
    edits: true,
    catchUp: { no: 'An ACP agent ends with its runner, so nothing happens while the runner is away.' },
    shared: { no: 'The runner starts an ACP agent, which has no terminal of its own.' },
  },
  help: HELP,
  flags: ['resume', 'cwd', 'mode', 'model', 'auth', 'answer-within', 'end-within'],
  async prepare({ flag, seconds, usage, env, command }) {
    const [program, ...args] = command;
    if (program === undefined) throw usage('put the command of the agent after --, as in: -- gemini --acp');
    const named = { session: flag('session'), resume: flag('resume') };
    const answerWithinMs = seconds('answer-within', 600, 86_400);
    const endWithinMs = seconds('end-within', 30, 3_600);
    const cwd = await folderOf(flag('cwd') ?? '.');
    if (!(await isInstalled(program, cwd, env))) {
      throw new CliError(EXIT.notInstalled, `${program} was not found; install it, or give its full path`);
    }
    const choices = { mode: flag('mode'), model: flag('model'), auth: flag('auth') };
    return {
      about: { kind: 'acp', source: 'acp', ...(choices.model === undefined ? {} : { model: choices.model }) },
      agentId: agentIdOf(cwd, programName(command)),
      matches: async (outbox) => findSession(await readSessions(outbox), named, nativeIdOf) !== undefined,
      callers: { by: 'ticket' },
      endWithinMs,
      async open({ outbox, controlFile, record, workspaceNote }) {
        const { memory, mustLoad } = await chooseSession(outbox, named, cwd);
        return {
          sessionId: memory.sessionId,
          source: async (context) =>
            new AcpSource({
              context,
              memory,
              mustLoad,
              inFlight: await InFlightMessages.restore(context, memory.sessionId),
              command: [program, ...args],
              ...{ env, controlFile, answerWithinMs, record, workspaceNote },
              ...choices,
            }),
        };
      },
    };
  },
};

/** Chooses the named session if this agent has run it; else a new one, or an existing one of the agent. */
async function chooseSession(
  outbox: Outbox,
  named: NamedSession,
  cwd: string,
): Promise<{ memory: AcpSession; mustLoad: boolean }> {
  const { session, resume } = named;
  const known = findSession(await readSessions(outbox), named, nativeIdOf);
  if (known !== undefined) {
    assertOneSession(known, named);
    return { memory: { ...known, cwd }, mustLoad: false };
  }
  const sessionId = session ?? resume ?? randomUUID();
  const memory: AcpSession = { sessionId, nativeId: resume ?? null, note: null, cwd, pid: null, running: false };
  return { memory, mustLoad: resume !== undefined };
}

const nativeIdOf = ({ nativeId }: AcpSession) => nativeId;

/** Display name of a command: `claude-agent-acp` for `node …/claude-agent-acp/dist/index.js`. */
function programName(command: readonly string[]): string {
  const [program = '', ...rest] = command;
  const isInterpreter = /^(node|npx|bun|bunx|deno|python3?|uvx|tsx)(\.exe)?$/.test(basename(program));
  const script = (isInterpreter ? rest.find((one) => !one.startsWith('-')) : undefined) ?? program;
  const name = basename(script, extname(script));
  if (!/^(index|main|cli|dist|bin|src|lib)$/.test(name)) return name || 'agent';
  const parent = dirname(script);
  return parent === script || parent === '.' ? name : programName([parent]);
}
