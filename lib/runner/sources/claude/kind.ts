import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { CliError, EXIT, TOKEN_HELP } from '../../cli/command';
import { interludeCommand, resolveOwnFolder } from '../../host/own-program.mjs';
import { newMcpServer, preloadMcpSdk } from '../../mcp/mcp-server';
import type { Outbox } from '../../outbox/outbox';
import { agentIdOf, assertOneSession, findSession, folderOf, type NamedSession, type RunnerKind } from '../runner-kind';
import { CLAUDE_SDK, ensureClaudeSdk, PERMISSION_MODES, type PermissionMode } from './claude-sdk';
import { ClaudeSource } from './claude-source';
import { type ClaudeSession, findConversation, readInFlight, readSessions } from './conversation';

const HELP = `Usage: ${interludeCommand(['runner', 'claude'])} [options]

Runs a Claude Code session, connects it to the dashboard, and prints its address. Messages from the dashboard reach the
agent; its work during and between turns is shown there.

  --session ID            run or continue this session; default: a new one
  --resume ID             continue a session by the dashboard's id or Claude Code's own
  --prompt TEXT           first message, sent once per session and text
  --agent ID              appear as this agent; default: from folder and machine
  --record FILE           record the traffic with the Agent SDK for "replay", without secrets
  --cwd DIR               working folder; default: this one
  --model M               model; default: Claude Code's
  --permission-mode MODE  ${PERMISSION_MODES.join(', ')}
  --answer-within S       seconds to wait for the answer to a permission or question; default 600
  --end-within S          seconds to wait for the agent after Ctrl-C; default 30
  --sdk DIR               folder whose node_modules contains the Agent SDK; default: INTERLUDE_CLAUDE_SDK_DIR, or
                          "agents" in Interlude's data folder
  --yes                   install a missing Agent SDK without asking
  --url URL               dashboard; default: INTERLUDE_URL, or the one on this machine
  --token-file F          ${TOKEN_HELP}

Needs the package ${CLAUDE_SDK}; if it is missing, the runner asks and installs it into the
folder of --sdk. The runner executes nothing from the working folder, but Claude Code obeys the settings and hooks of its
project.
INTERLUDE_WORKSPACE ({"mode":…,"deps":…,"symlinks":[…]}) names links into a main checkout; the agent gets them with its first
message.
At the end of a session the log has the share of tool calls that only gathered information (signal context_ratio);
INTERLUDE_CONTEXT_RATIO=off disables it.
Ctrl-C lets the agent finish its current step; press it again to stop immediately. Records that have not reached the
dashboard are sent by the next run.

Exit codes: 0 ended, 1 failed, 2 usage, 3 the Agent SDK is not installed.`;

type Environment = Record<string, string | undefined>;

export const kind: RunnerKind = {
  features: {
    turns: true,
    betweenRun: true,
    cause: true,
    tasks: true,
    taskEnds: true,
    taskOutput: true,
    subagents: true,
    permissions: true,
    questions: true,
    messages: true,
    attachments: true,
    interrupt: true,
    end: true,
    stop: true,
    wake: { needless: 'Claude Code wakes by itself when a background task ends.' },
    plans: true,
    edits: true,
    catchUp: { partly: 'Work done while the runner was away is not shown; a resumed session continues from there.' },
    shared: { no: 'It has no terminal; “runner hooks” follows the terminals that you start.' },
  },
  help: HELP,
  acceptsPrompt: true,
  flags: ['resume', 'cwd', 'model', 'permission-mode', 'answer-within', 'end-within', 'sdk'],
  switches: ['yes'],
  async prepare({ flag, has, seconds, usage, env, dataDir }) {
    const named = { session: flag('session'), resume: flag('resume') };
    const [model, permissionMode] = [flag('model'), flag('permission-mode') as PermissionMode | undefined];
    if (permissionMode !== undefined && !PERMISSION_MODES.includes(permissionMode)) {
      throw usage(`--permission-mode must be one of ${PERMISSION_MODES.join(', ')}`);
    }
    const answerWithinMs = seconds('answer-within', 600, 86_400);
    const endWithinMs = seconds('end-within', 30, 3_600);
    const cwd = await folderOf(flag('cwd') ?? '.');
    const sdkFolder = flag('sdk');
    // A path in the flag is relative to the working folder; in the variable, to Interlude's folder.
    const elsewhere = env.INTERLUDE_CLAUDE_SDK_DIR ? resolveOwnFolder(env.INTERLUDE_CLAUDE_SDK_DIR) : undefined;
    const sdk = sdkFolder === undefined ? elsewhere : resolve(sdkFolder);
    preloadMcpSdk();
    const installed = await ensureClaudeSdk(dataDir, { sdk, yes: has('yes') });
    return {
      about: { kind: 'claude', source: 'sdk', ...(model === undefined ? {} : { model }) },
      agentId: agentIdOf(cwd),
      matches: async (outbox) => findSession(await readSessions(outbox), named, conversationIdOf) !== undefined,
      endWithinMs,
      async open({ outbox, controlFile, workspaceNote, record }) {
        const memory = await chooseSession(outbox, named, cwd, env);
        const inFlight = await readInFlight(outbox, memory.sessionId);
        const options = {
          ...{ ...installed, toolServer: newMcpServer, memory, inFlight, env, controlFile },
          ...{ model, permissionMode, answerWithinMs, workspaceNote, record },
        };
        return {
          source: (context) => new ClaudeSource({ ...options, context }),
          sessionId: memory.sessionId,
        };
      },
    };
  },
};

/** Chooses the named session if this agent has run it; else a new one, or an existing conversation of Claude Code. */
async function chooseSession(
  outbox: Outbox,
  named: NamedSession,
  cwd: string,
  env: Environment,
): Promise<ClaudeSession> {
  const { session, resume } = named;
  const known = findSession(await readSessions(outbox), named, conversationIdOf);
  if (known !== undefined) {
    assertOneSession(known, named);
    return { ...known, cwd };
  }
  const fresh = { pid: null, running: false, cwd };
  if (resume === undefined) {
    return { ...fresh, sessionId: session ?? randomUUID(), conversationId: randomUUID() };
  }
  if ((await findConversation(env, resume)) === null) {
    throw new CliError(EXIT.failed, `neither this agent nor Claude Code has a session ${resume}; check the id`);
  }
  return { ...fresh, sessionId: session ?? resume, conversationId: resume };
}

const conversationIdOf = ({ conversationId }: ClaudeSession) => conversationId;
