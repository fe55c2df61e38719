import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { truncateText } from '@interlude/protocol/text';
import { TEXT, TOKEN_HELP } from '../../cli/command';
import { controlPath } from '../../host/control-file';
import { interludeCommand } from '../../host/own-program.mjs';
import type { RunnerKind } from '../runner-kind';
import { agUiEndpoints } from './agui-endpoints';
import { AgUiSource } from './agui-source';

const HELP = `Usage: ${interludeCommand(['runner', 'agui'])} --url URL [options]

Connects an agent that speaks AG-UI to the dashboard: what people write there begins a run of the agent, and what it does
between runs is listened to, where the server tells it. Prints the address of the session.

  --url URL           where the agent's runs are posted: http://127.0.0.1:8000/, or CopilotKit's …/agent/NAME/run
  --session ID        the session, which is AG-UI's threadId; default: the one this agent had last, else a new one
  --prompt TEXT       its first message, said once: the same text again for the same session is not repeated
  --history all|none  what of the conversation is sent with each run; default: all. none is for servers that keep it
  --events-path PATH  where the events between runs are, {threadId} in it is replaced; default: events/{threadId}, then
                      events, beside the runs
  --agent ID          the agent to appear as; default: made of the address and this machine
  --record FILE       write down what passes between it and the agent, without secrets, for "replay"
  --end-within S      seconds a run may go on after Ctrl-C; default 30
  --dashboard URL     the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F      ${TOKEN_HELP}

INTERLUDE_AGENT_AUTHORIZATION is sent to the agent's server as the Authorization of each request ("Bearer …").
The agent goes on when the runner ends; a run that is under way then is cut off.

Exit codes: 0 ended, 1 failed, 2 usage.`;

const SESSION = 'agui-session';

export const kind: RunnerKind = {
  title: 'AG-UI',
  features: {
    turns: true,
    betweenRun: {
      partly: 'Turns between yours are shown if the server has a stream of events; AG-UI itself has none.',
    },
    cause: { partly: 'What woke the agent is known if a task ended just before.' },
    tasks: { partly: 'Background tasks are shown if the server tells of them: as “task:…” events, or as Mastra does.' },
    taskEnds: { partly: 'How a task ended is known if the server tells it, or lists its tasks.' },
    taskOutput: { partly: 'What a task writes is shown if the server runs on this machine and names the file.' },
    subagents: { partly: 'Subagents are shown if the server marks what they say (AG-UI 1.0).' },
    permissions: { partly: 'Permissions are asked here if the server ends its runs with interrupts.' },
    questions: { partly: 'Questions are asked here if they are interrupts, or calls of AskUserQuestion.' },
    messages: true,
    attachments: { no: 'An AG-UI server does not say which media it takes, so nothing can be attached to a message.' },
    interrupt: {
      partly: 'A turn that the agent began by itself can be interrupted if the server has an address for that.',
    },
    end: { no: 'AG-UI has no way to end a session: the agent’s server keeps it.' },
    stop: { partly: 'Tasks can be stopped if the server has an address for that.' },
    wake: { no: 'AG-UI has no way to wake an agent with the result of a task; write to it instead.' },
    plans: { no: 'AG-UI has no plans; a server’s own activities are stored.' },
    edits: { no: 'AG-UI does not say what a call changed in files.' },
    catchUp: { no: 'What the agent did while its runner was away is not told, but for how its tasks ended.' },
    shared: {
      no: 'What other clients of the server write is shown only if the server tells it in its stream of events.',
    },
  },
  help: HELP,
  urlIsAgents: true,
  takesPrompt: true,
  flags: { history: TEXT, 'events-path': TEXT, 'end-within': TEXT },
  async prepare({ flag, seconds, usage, env, dataDir }) {
    const url = flag('url');
    if (url === undefined)
      throw usage('name the address where the agent’s runs are posted: --url http://127.0.0.1:8000/');
    const history = flag('history') ?? 'all';
    if (history !== 'all' && history !== 'none') throw usage('--history is all or none');
    const eventsPath = flag('events-path');
    if (eventsPath !== undefined && !URL.canParse(eventsPath, url)) throw usage(`${eventsPath} is no path`);
    const endWithinMs = seconds('end-within', 30, 3_600);
    const authorization = env.INTERLUDE_AGENT_AUTHORIZATION;
    return {
      about: { kind: 'agui', source: 'agui', agentGoesOn: true },
      journal: 'agui',
      meanwhile: 'the agent goes on',
      agentId: agentIdOf(url),
      carries: async (outbox) => {
        const wanted = flag('session');
        return wanted !== undefined && (await outbox.cursor(SESSION)) === wanted;
      },
      controlFile: (agentId) => controlPath(dataDir, agentId),
      callers: { by: 'call', listensAt: url },
      endWithinMs,
      async open({ outbox, logger, record, workspaceNote }) {
        logger.redactor.learn(authorization);
        const sessionId = flag('session') ?? (await outbox.cursor(SESSION)) ?? randomUUID();
        await outbox.enqueue([], { name: SESSION, value: sessionId });
        return {
          source: (context) =>
            new AgUiSource({
              context,
              url,
              sessionId,
              eventsPath,
              history,
              headers: authorization ? { authorization } : {},
              record,
              workspaceNote,
            }),
          sessionId,
        };
      },
    };
  },
};

/** Each agent of a server is an agent of its own, also per machine. */
function agentIdOf(url: string): string {
  const { host, pathname } = new URL(agUiEndpoints(url, '-').tasks.replace(/tasks(\?.*)?$/, ''));
  const name = `${host}${pathname}`.replaceAll(/[^\w.-]+/g, '-').replace(/-+$/, '');
  return `${truncateText(name, 80)}@${hostname().split('.')[0]}`;
}
