import { randomUUID } from 'node:crypto';
import { access } from 'node:fs/promises';
import { basename, delimiter, dirname, extname, resolve } from 'node:path';
import { CliError, EXIT, TEXT, TOKEN_HELP } from '../../cli/command';
import { controlPath } from '../../host/control-file';
import { InFlightMessages } from '../../host/message-delivery';
import { interludeCommand } from '../../host/own-program.mjs';
import type { Outbox } from '../../outbox/outbox';
import { agentIdOf, folderOf } from '../kind-options';
import type { RunnerKind } from '../runner-kind';
import { AcpSource } from './acp-source';
import { type AcpSession, findSession, readSessions } from './session-setup';

const HELP = `Usage: ${interludeCommand(['runner', 'acp'])} [options] -- <command…>

Runs an agent that speaks the Agent Client Protocol (ACP) on its stdin and stdout, and connects it to the dashboard: what
people write there reaches the agent, what the agent does, in a turn and between turns, reaches the dashboard. Prints the
address of the session.

  ${interludeCommand(['runner', 'acp'])} -- gemini --acp
  ${interludeCommand(['runner', 'acp'])} -- opencode acp

  --session ID            the session to run; one this agent has run before is continued; default: a new one
  --resume ID             continue a session: the dashboard's id, or the agent's own
  --prompt TEXT           its first message, said once: the same text again for the same session is not repeated
  --agent ID              the agent to appear as; default: made of the program, the folder's name and the machine
  --record FILE           write down what passes between it and the agent, without secrets, for "replay"
  --cwd DIR               the folder to work in; default: this one
  --mode ID               the mode to work in, of those the agent offers
  --model ID              the model, of those the agent offers
  --auth METHOD           how to sign in, of the ways the agent names; default: none, or its only API key
  --answer-within S       seconds a permission waits for a person; default 600
  --end-within S          seconds the agent may go on after Ctrl-C; default 30
  --url URL               the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F          ${TOKEN_HELP}

The agent runs with this environment, and with the settings of the folder it works in. What INTERLUDE_WORKSPACE says of
links into a main checkout, {"mode":…,"deps":…,"symlinks":[…]}, stands before the first message that a new session is given.
Ctrl-C lets the agent finish what it is doing; a second one ends it now. What has not reached the dashboard by then is
kept and sent by the next run.

Exit codes: 0 ended, 1 failed, 2 usage, 3 there is no such program.`;

const TEXTS = ['resume', 'cwd', 'mode', 'model', 'auth', 'answer-within', 'end-within'];

const NO_WAKE = 'A message begins a turn; ACP has nothing else that does.';

export const kind: RunnerKind = {
  title: 'ACP agents',
  takesCommand: true,
  takesPrompt: true,
  features: {
    turns: true,
    betweenRun: {
      partly:
        'Only some ACP agents begin turns by themselves; where one does not say that it ended, 10 s of silence do.',
    },
    cause: { partly: 'Only claude-agent-acp and Qwen Code say which task woke them.' },
    tasks: { partly: 'ACP has no word for background tasks: those of agents whose own words for them are known.' },
    taskEnds: {
      partly:
        'Only claude-agent-acp, codex-acp, Qwen Code and Copilot report how a task ended. For Gemini CLI and Kimi Code the runner follows the process.',
    },
    taskOutput: {
      partly: 'Only claude-agent-acp and Qwen Code name the files that their commands write to.',
    },
    subagents: { partly: 'Only claude-agent-acp marks what its subagents do; Copilot marks their tool calls.' },
    permissions: true,
    questions: { no: 'ACP agents ask for permissions; ACP has no other questions.' },
    messages: true,
    attachments: {
      partly:
        'Images can be attached for an agent that says it takes them; most files are links to the runner’s disk, which the agent reads by itself.',
    },
    interrupt: true,
    end: true,
    stop: { partly: 'Only claude-agent-acp and codex-acp can end a single background command.' },
    wake: { no: NO_WAKE },
    plans: true,
    edits: true,
    catchUp: { no: 'What an ACP agent did while its runner was gone is not told: it ends with its runner.' },
    shared: { no: 'An ACP agent is started by the runner, and has no terminal of its own.' },
  },
  help: HELP,
  flags: Object.fromEntries(TEXTS.map((name) => [name, TEXT])),
  async prepare({ flag, seconds, usage, env, dataDir, command }) {
    const [program, ...args] = command;
    if (program === undefined) throw usage('name the command of the agent behind --, as in: -- gemini --acp');
    const named = { session: flag('session'), resume: flag('resume') };
    const answerWithinMs = seconds('answer-within', 600, 86_400);
    const endWithinMs = seconds('end-within', 30, 3_600);
    const cwd = await folderOf(flag('cwd') ?? '.');
    await mustBeThere(program, cwd, env);
    const choices = { mode: flag('mode'), model: flag('model'), auth: flag('auth') };
    return {
      about: { kind: 'acp', source: 'acp', ...(choices.model === undefined ? {} : { model: choices.model }) },
      journal: 'acp',
      meanwhile: 'the agent goes on',
      agentId: agentIdOf(cwd, programName(command)),
      carries: async (outbox) => {
        const wanted = named.resume ?? named.session;
        return wanted !== undefined && findSession(await readSessions(outbox), wanted) !== undefined;
      },
      controlFile: (agentId) => controlPath(dataDir, agentId),
      callers: { by: 'ticket' },
      endWithinMs,
      async open({ agentId, outbox, record, workspaceNote }) {
        const { memory, mustLoad } = await sessionToCarry(outbox, named, cwd);
        const controlFile = controlPath(dataDir, agentId);
        return {
          sessionId: memory.sessionId,
          source: async (context) =>
            new AcpSource({
              context,
              memory,
              mustLoad,
              inHand: await InFlightMessages.recall(context, memory.sessionId),
              command: [program, ...args],
              ...{ env, controlFile, answerWithinMs, record, workspaceNote },
              ...choices,
            }),
        };
      },
    };
  },
};

/** The named session if this agent has run it; else a new one, or an existing one of the agent. */
async function sessionToCarry(
  outbox: Outbox,
  { session, resume }: { session: string | undefined; resume: string | undefined },
  cwd: string,
): Promise<{ memory: AcpSession; mustLoad: boolean }> {
  const wanted = resume ?? session;
  const known = wanted === undefined ? undefined : findSession(await readSessions(outbox), wanted);
  if (known !== undefined) {
    if (session !== undefined && known.sessionId !== session) {
      throw new CliError(EXIT.failed, `${resume} is session ${known.sessionId} already; leave --session out`);
    }
    return { memory: { ...known, cwd }, mustLoad: false };
  }
  const sessionId = session ?? resume ?? randomUUID();
  const memory: AcpSession = { sessionId, nativeId: resume ?? null, note: null, cwd, pid: null, running: false };
  return { memory, mustLoad: resume !== undefined };
}

/** @throws CliError before an agent that can't be started appears anywhere */
async function mustBeThere(program: string, cwd: string, env: Record<string, string | undefined>): Promise<void> {
  const folders = /[/\\]/.test(program) ? [cwd] : (env.PATH ?? '').split(delimiter);
  for (const folder of folders) {
    if (
      await access(resolve(folder, program)).then(
        () => true,
        () => false,
      )
    )
      return;
  }
  throw new CliError(
    EXIT.notInstalled,
    `there is no ${program} on this machine; install it, or name it with its whole path`,
  );
}

/** Display name of a command: `claude-agent-acp` for `node …/claude-agent-acp/dist/index.js`. */
export function programName(command: readonly string[]): string {
  const [program = '', ...rest] = command;
  const isInterpreter = /^(node|npx|bun|bunx|deno|python3?|uvx|tsx)(\.exe)?$/.test(basename(program));
  const script = (isInterpreter ? rest.find((one) => !one.startsWith('-')) : undefined) ?? program;
  const name = basename(script, extname(script));
  if (!/^(index|main|cli|dist|bin|src|lib)$/.test(name)) return name || 'agent';
  const parent = dirname(script);
  return parent === script || parent === '.' ? name : programName([parent]);
}
