import { TOKEN_HELP } from '../../cli/command';
import { interludeCommand } from '../../host/own-program.mjs';
import { agentIdOfAddress, onThisMachine, type RunnerKind, sessionAtAddress } from '../runner-kind';
import { agUiEndpoints } from './agui-endpoints';
import { AgUiSource } from './agui-source';

const HELP = `Usage: ${interludeCommand(['runner', 'agui'])} --url URL [options]

Connects an agent whose server speaks AG-UI to the dashboard, and prints the address of the session. A message from the
dashboard starts a run; events between runs are shown if the server streams them.

  --url URL           where runs are posted: http://127.0.0.1:8000/, or CopilotKit's …/agent/NAME/run
  --session ID        session, AG-UI's threadId; default: this agent's last one, or a new one
  --prompt TEXT       first message, sent once per session and text
  --history all|none  conversation to send with each run; default: all. Use none for servers that keep it
  --events-path PATH  where events between runs are streamed; {threadId} in it is replaced. Default: events/{threadId},
                      then events, beside the address of runs
  --agent ID          appear as this agent; default: from address and machine
  --record FILE       record the traffic with the server for "replay", without secrets
  --end-within S      seconds to wait for a run after Ctrl-C; default 30
  --dashboard URL     dashboard; default: INTERLUDE_URL, or the one on this machine
  --token-file F      ${TOKEN_HELP}

INTERLUDE_AGENT_AUTHORIZATION is sent to the agent's server as the Authorization of each request ("Bearer …").
The server continues when the runner ends; an open run is cut off.

Exit codes: 0 ended, 1 failed, 2 usage.`;

const SESSION = 'agui-session';

export const kind: RunnerKind = {
  features: {
    turns: true,
    betweenRun: {
      partly: 'Between-run turns are shown if the server has a stream of events; AG-UI itself has none.',
    },
    cause: { partly: 'The cause of a turn is known if a task ended just before.' },
    tasks: { partly: 'Background tasks are shown if the server sends “task:…” events or Mastra’s activities.' },
    taskEnds: { partly: 'The end of a task is known if the server reports it or lists its tasks.' },
    taskOutput: { partly: 'Output of a task is shown if the server runs on this machine and names the file.' },
    subagents: { partly: 'Subagents are shown if the server marks their events (AG-UI 1.0).' },
    permissions: { partly: 'Permissions can be answered here if the server ends its runs with interrupts.' },
    questions: { partly: 'Questions can be answered here if they are interrupts or calls of AskUserQuestion.' },
    messages: true,
    attachments: { no: 'An AG-UI server doesn’t report which media it supports, so messages have no attachments.' },
    interrupt: {
      partly: 'A between-run turn can be interrupted if the server has an address for that.',
    },
    end: { no: 'AG-UI can’t end a session: the agent’s server keeps it.' },
    stop: { partly: 'Tasks can be stopped if the server has an address for that.' },
    wake: { no: 'AG-UI can’t wake an agent with the result of a task; send a message instead.' },
    plans: { no: 'AG-UI has no plans; a server’s own activities are stored.' },
    edits: { no: 'AG-UI doesn’t report file changes.' },
    catchUp: { no: 'Work done while the runner was away is not shown, except how tasks ended.' },
    shared: {
      no: 'Messages of other clients are shown only if the server’s stream of events has them.',
    },
  },
  help: HELP,
  urlNamesAgent: true,
  acceptsPrompt: true,
  flags: ['history', 'events-path', 'end-within'],
  async prepare({ flag, seconds, usage, env }) {
    const url = flag('url');
    if (url === undefined)
      throw usage('name the address where the agent’s runs are posted: --url http://127.0.0.1:8000/');
    const history = flag('history') ?? 'all';
    if (history !== 'all' && history !== 'none') throw usage('--history is all or none');
    const eventsPath = flag('events-path');
    if (eventsPath !== undefined && !URL.canParse(eventsPath, url)) throw usage('--events-path must be a path or URL');
    const endWithinMs = seconds('end-within', 30, 3_600);
    const authorization = env.INTERLUDE_AGENT_AUTHORIZATION;
    // A server may have several agents, each with its own address.
    const agentUrl = new URL(agUiEndpoints(url, '-').tasks.replace(/tasks(\?.*)?$/, ''));
    return {
      about: { kind: 'agui', source: 'agui', agentGoesOn: true },
      agentId: onThisMachine(agentIdOfAddress(agentUrl)),
      matches: async (outbox) => {
        const wanted = flag('session');
        return wanted !== undefined && (await outbox.cursor(SESSION)) === wanted;
      },
      callers: { by: 'call', listensAt: url },
      endWithinMs,
      async open({ outbox, logger, record, workspaceNote }) {
        logger.redactor.addSecret(authorization);
        const sessionId = await sessionAtAddress(outbox, SESSION, flag('session'));
        return {
          source: (context) =>
            new AgUiSource({
              ...{ context, url, sessionId, eventsPath, history, record, workspaceNote },
              headers: authorization ? { authorization } : {},
            }),
          sessionId,
        };
      },
    };
  },
};
