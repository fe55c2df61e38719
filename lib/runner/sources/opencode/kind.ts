import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { CliError, EXIT, TEXT, TOKEN_HELP } from '../../cli/command';
import { controlPath } from '../../host/control-file';
import { interludeCommand } from '../../host/own-program.mjs';
import { connectionMessage } from '../../host/server-request';
import type { RunnerKind } from '../runner-kind';
import { errorText, OpencodeServer, type ServerAddress } from './opencode-server';
import { OpencodeSource } from './opencode-source';

const DEFAULT_URL = 'http://127.0.0.1:4096';
const USER = 'opencode';
const ANSWERS_WITHIN_MS = 3_000;

const HELP = `Usage: ${interludeCommand(['runner', 'opencode'])} [--url URL] [options]

Connects the sessions of an OpenCode server to the dashboard: what people write there reaches the agent, what the agents
and their subagents do, in a turn and between turns, reaches the dashboard. Terminals go on beside it: start them with
“opencode --port 4096”, or start “opencode serve --port 4096” and join it with “opencode attach”. A terminal that was
started without --port can't be reached.

  --url URL             OpenCode's address; default: ${DEFAULT_URL}
  --directory DIR       follow only the sessions of this folder; default: all that the server has
  --session ID          follow only this session: OpenCode's own id, or a name, under which one is made
  --prompt TEXT         the first message of the session that --session names, said once: the same text again for the
                        same session is not repeated
  --password-file FILE  where the server's password is; default: OPENCODE_SERVER_PASSWORD, or the one in --url
  --agent ID            the agent to appear as; default: made of the machine's name and the port
  --record FILE         write down what passes between it and the agent, without secrets, for "replay"
  --dashboard URL       the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F        ${TOKEN_HELP}

Sessions of the last day are told from their beginning, older ones when something happens in them. What happened while
this process, or the connection, was away is read from OpenCode's own history. A session that --session has made is told
with its first message what INTERLUDE_WORKSPACE says of links into a main checkout, {"mode":…,"deps":…,"symlinks":[…]}.

Exit codes: 0 ended, 1 failed, 2 usage.`;

export const kind: RunnerKind = {
  title: 'OpenCode',
  features: {
    turns: true,
    betweenRun: true,
    cause: true,
    tasks: { partly: 'OpenCode runs subagents in the background, but no commands.' },
    taskEnds: true,
    taskOutput: { no: 'A subagent writes no output of its own: what it says and does is shown.' },
    subagents: true,
    permissions: true,
    questions: true,
    messages: true,
    attachments: {
      partly:
        'Whether OpenCode’s model sees images and PDFs depends on the model; of texts over 64 KiB it is told where they are on this machine’s disk, and a server elsewhere gets none.',
    },
    interrupt: true,
    end: { no: 'OpenCode’s server is not the runner’s: a session stays there until it is deleted in OpenCode.' },
    stop: true,
    wake: { needless: 'OpenCode wakes its agent by itself when a subagent ends.' },
    plans: true,
    edits: { partly: 'A file that is written anew over another one has no diff: OpenCode does not say what it held.' },
    catchUp: true,
    shared: true,
  },
  urlIsAgents: true,
  help: HELP,
  takesPrompt: true,
  flags: { directory: TEXT, 'password-file': TEXT },
  async prepare({ flag, usage, env, dataDir }) {
    const { address, shownUrl } = await addressOf(flag('url') ?? DEFAULT_URL, flag('password-file'), env);
    const folder = flag('directory');
    const session = flag('session');
    if (flag('prompt') !== undefined && session === undefined) {
      throw usage('--prompt is for one session: name it with --session');
    }
    return {
      about: { kind: 'opencode', source: 'opencode', host: new URL(shownUrl).host, agentGoesOn: true },
      journal: 'opencode',
      meanwhile: 'OpenCode goes on',
      agentId: agentIdOf(shownUrl),
      controlFile: (agentId) => controlPath(dataDir, agentId),
      callers: { by: 'call', listensAt: shownUrl, client: /^opencode/i },
      endWithinMs: 0,
      async open({ agentId, logger, record, workspaceNote }) {
        if (address.password !== null) logger.redactor.learn(address.password);
        const trouble = await troubleWith(address);
        const now = trouble === null ? '' : ` once it answers (${trouble})`;
        return {
          source: (context) =>
            OpencodeSource.open({
              ...{ address, shownUrl, context, record, session, workspaceNote, newRunId: randomUUID },
              directory: folder === undefined ? undefined : resolve(folder),
            }),
          ...(session === undefined
            ? { greeting: `${agentId} follows the sessions of OpenCode at ${shownUrl}${now}; Ctrl-C ends it` }
            : { sessionId: session }),
        };
      },
    };
  },
};

/** @throws CliError if the password file can't be read */
async function addressOf(url: string, file: string | undefined, env: Record<string, string | undefined>) {
  const shown = new URL(url);
  const named = { user: decoded(shown.username), password: decoded(shown.password) };
  shown.username = '';
  shown.password = '';
  const shownUrl = shown.href.replace(/\/+$/, '');
  const fromFile = file === undefined ? undefined : await passwordIn(file);
  const password = fromFile ?? (named.password || env.OPENCODE_SERVER_PASSWORD || null);
  const user = named.user || env.OPENCODE_SERVER_USERNAME || USER;
  const address: ServerAddress = { url: shownUrl, user, password };
  return { address, shownUrl };
}

/** A bare `%` is taken literally. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * @returns why the server does not respond, or null
 * @throws CliError if it requires another password
 */
async function troubleWith(address: ServerAddress): Promise<string | null> {
  const server = new OpencodeServer(address, new AbortController().signal);
  try {
    const answer = await server.request('GET', '/global/health', undefined, ANSWERS_WITHIN_MS);
    if (answer.status !== 401) return answer.status === 200 ? null : errorText(answer);
  } catch (error) {
    return connectionMessage(error);
  }
  const how = address.password === null ? 'requires a password' : 'rejected the password';
  throw new CliError(EXIT.failed, `OpenCode ${how}; set OPENCODE_SERVER_PASSWORD or --password-file`);
}

async function passwordIn(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(EXIT.failed, `the password can't be read from ${file}: ${error.code}`);
  });
  return text.trim();
}

/** Each server on a machine is an agent. */
function agentIdOf(shownUrl: string): string {
  const { hostname: name, port } = new URL(shownUrl);
  const isHere = name === 'localhost' || name === '[::1]' || name.startsWith('127.');
  return `opencode-${port || '80'}@${isHere ? hostname().split('.')[0] : name.replaceAll(/[^\w.-]+/g, '-')}`;
}
