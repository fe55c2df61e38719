import { TOKEN_HELP } from '../../cli/command';
import { interludeCommand } from '../../host/own-program.mjs';
import { agentIdOfAddress, onThisMachine, type RunnerKind, sessionAtAddress } from '../runner-kind';
import { AgentApiSource } from './agentapi-source';

const HELP = `Usage: ${interludeCommand(['runner', 'agentapi'])} --url URL [options]

Connects the terminal agent behind an AgentAPI server (coder/agentapi) to the dashboard, and prints the address of the
session. Messages from the dashboard are typed into the terminal; its screen is shown during and between turns.

  --url URL        AgentAPI's address, such as http://127.0.0.1:3284
  --session ID     session; default: this agent's last one, or a new one
  --prompt TEXT    first message, sent once per session and text
  --agent ID       appear as this agent; default: from address and machine
  --record FILE    record the traffic with AgentAPI for "replay", without secrets
  --dashboard URL  dashboard; default: INTERLUDE_URL, or the one on this machine
  --token-file F   ${TOKEN_HELP}

INTERLUDE_AGENT_AUTHORIZATION is sent to AgentAPI as the Authorization of each request, for a server behind a proxy.
The agent continues when the runner ends.

Exit codes: 0 ended, 1 failed, 2 usage.`;

const SESSION = 'agentapi-session';

export const kind: RunnerKind = {
  features: {
    turns: {
      partly: 'The agent’s text is read from its screen, 80 characters wide, with thoughts and tool calls in it.',
    },
    betweenRun: { partly: 'A turn that the agent starts by itself is recognised by additions to its last message.' },
    cause: { no: 'AgentAPI doesn’t report what woke the agent.' },
    tasks: { no: 'AgentAPI has no background tasks.' },
    taskEnds: { no: 'The end of a background task is known only from the agent’s text.' },
    taskOutput: { no: 'The output of background tasks is not available.' },
    subagents: { no: 'Subagents can’t be distinguished from the agent.' },
    permissions: {
      partly: 'A choice on the screen can be answered here if it is numbered with one entry marked, or ends in (y/n).',
    },
    questions: { no: 'Other questions on the screen look like an idle agent; read its text.' },
    messages: {
      partly: 'A message waits until the screen is stable and shows no question: AgentAPI accepts it only then.',
    },
    attachments: {
      partly:
        'Files are uploaded to AgentAPI and named in the message, and the agent reads them itself. AgentAPI before 0.10 supports this on the same machine only.',
    },
    interrupt: { partly: 'Interrupting sends the Escape key, which some agents use for something else.' },
    end: { no: 'AgentAPI can’t end its agent: end it where it was started.' },
    stop: { no: 'AgentAPI has no tasks to stop.' },
    wake: { no: 'AgentAPI has no task results to wake the agent with.' },
    plans: { no: 'Plans are part of the agent’s text.' },
    edits: { no: 'File changes are part of the agent’s text.' },
    catchUp: {
      partly: 'Text written while the runner was away appears once the runner is back, with the time of its return.',
    },
    shared: { partly: 'Input typed into the terminal itself is not shown; “agentapi attach” shows the same screen.' },
  },
  help: HELP,
  urlNamesAgent: true,
  acceptsPrompt: true,
  async prepare({ flag, usage, env }) {
    const address = flag('url');
    if (address === undefined) throw usage('name the address of AgentAPI: --url http://127.0.0.1:3284');
    const url = address.replace(/\/+$/, '');
    const authorization = env.INTERLUDE_AGENT_AUTHORIZATION;
    return {
      about: { kind: 'agentapi', source: 'agentapi', agentGoesOn: true },
      agentId: onThisMachine(`agentapi-${agentIdOfAddress(new URL(url))}`),
      matches: async (outbox) => {
        const wanted = flag('session');
        return wanted !== undefined && (await outbox.cursor(SESSION)) === wanted;
      },
      callers: { by: 'process', listensAt: url, client: clientOf },
      endWithinMs: 0,
      async open({ outbox, logger, record, workspaceNote }) {
        logger.redactor.addSecret(authorization);
        const sessionId = await sessionAtAddress(outbox, SESSION, flag('session'));
        const headers: Record<string, string> = authorization ? { authorization } : {};
        return {
          source: (context) => new AgentApiSource({ context, url, sessionId, headers, record, workspaceNote }),
          sessionId,
        };
      },
    };
  },
};

/** Agents whose MCP clients use their own name. Others reuse a type, as Qwen Code does with Gemini CLI. */
const NAMED = ['claude', 'codex', 'opencode'];

/** @param provider `gemini (AgentAPI)` */
export function clientOf(provider: string): RegExp {
  const others = NAMED.filter((name) => !provider.startsWith(name));
  return provider === '' || provider.startsWith('custom') ? /^/ : new RegExp(`^(?!${others.join('|')})`, 'i');
}
