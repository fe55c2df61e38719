import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { truncateText } from '@interlude/protocol/text';
import { TOKEN_HELP } from '../../cli/command';
import { controlPath } from '../../host/control-file';
import { interludeCommand } from '../../host/own-program.mjs';
import type { RunnerKind } from '../runner-kind';
import { AgentApiSource } from './agentapi-source';

const HELP = `Usage: ${interludeCommand(['runner', 'agentapi'])} --url URL [options]

Connects the terminal agent behind an AgentAPI server (coder/agentapi) to the dashboard: what people write there is typed
into the terminal, and what is read off its screen is shown, also between turns. Prints the address of the session.

  --url URL        AgentAPI's address: http://127.0.0.1:3284
  --session ID     the session; default: the one this agent had last, else a new one
  --prompt TEXT    its first message, said once: the same text again for the same session is not repeated
  --agent ID       the agent to appear as; default: made of the address and this machine
  --record FILE    write down what passes between it and the agent, without secrets, for "replay"
  --dashboard URL  the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F   ${TOKEN_HELP}

INTERLUDE_AGENT_AUTHORIZATION is sent to AgentAPI as the Authorization of each request, for one that stands behind a proxy.
The agent goes on when the runner ends.

Exit codes: 0 ended, 1 failed, 2 usage.`;

const SESSION = 'agentapi-session';

export const kind: RunnerKind = {
  title: 'AgentAPI',
  features: {
    turns: {
      partly:
        'The agent’s words are read off its screen, 80 characters wide; thoughts and tool calls are part of them.',
    },
    betweenRun: { partly: 'A turn that the agent begins by itself is known by what comes to its last message.' },
    cause: { no: 'AgentAPI does not say what woke the agent.' },
    tasks: { no: 'AgentAPI knows no background tasks.' },
    taskEnds: { no: 'How a background task ended is known only by what the agent says of it.' },
    taskOutput: { no: 'What a background task writes is not told.' },
    subagents: { no: 'Subagents can’t be told from the agent itself.' },
    permissions: {
      partly:
        'A choice on the screen is shown and answered here if it is numbered with one entry marked, or ends in (y/n).',
    },
    questions: { no: 'Other questions on the screen look like rest; the agent’s words say what it asks.' },
    messages: {
      partly: 'A message waits until the screen stands still and asks nothing, because AgentAPI takes it only then.',
    },
    attachments: {
      partly:
        'Files are uploaded to AgentAPI and named in the message: the agent in the terminal reads them by itself. One before 0.10 takes them on this machine only.',
    },
    interrupt: { partly: 'A turn is interrupted by the Escape key, which some agents take otherwise.' },
    end: { no: 'AgentAPI has no way to end its agent: end it where it was started.' },
    stop: { no: 'There are no tasks to stop.' },
    wake: { no: 'There are no tasks whose results it could be woken with.' },
    plans: { no: 'Plans are part of the agent’s words.' },
    edits: { no: 'Changes of files are part of the agent’s words.' },
    catchUp: {
      partly: 'What the agent said while its runner was away is told when it comes back, with the time of then.',
    },
    shared: { partly: 'What is typed into the terminal itself is not told; “agentapi attach” shows the same screen.' },
  },
  help: HELP,
  urlIsAgents: true,
  takesPrompt: true,
  flags: {},
  async prepare({ flag, usage, env, dataDir }) {
    const address = flag('url');
    if (address === undefined) throw usage('name the address of AgentAPI: --url http://127.0.0.1:3284');
    const url = address.replace(/\/+$/, '');
    const authorization = env.INTERLUDE_AGENT_AUTHORIZATION;
    return {
      about: { kind: 'agentapi', source: 'agentapi', agentGoesOn: true },
      journal: 'agentapi',
      meanwhile: 'the agent goes on',
      agentId: agentIdOf(url),
      carries: async (outbox) => {
        const wanted = flag('session');
        return wanted !== undefined && (await outbox.cursor(SESSION)) === wanted;
      },
      controlFile: (agentId) => controlPath(dataDir, agentId),
      callers: { by: 'process', listensAt: url, client: clientOf },
      endWithinMs: 0,
      async open({ outbox, logger, record, workspaceNote }) {
        logger.redactor.learn(authorization);
        const sessionId = flag('session') ?? (await outbox.cursor(SESSION)) ?? randomUUID();
        await outbox.enqueue([], { name: SESSION, value: sessionId });
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

/** Each server is an agent of its own, also per machine. */
function agentIdOf(url: string): string {
  const { host, pathname } = new URL(url);
  const name = `${host}${pathname}`.replaceAll(/[^\w.-]+/g, '-').replace(/-+$/, '');
  return `agentapi-${truncateText(name, 80)}@${hostname().split('.')[0]}`;
}
