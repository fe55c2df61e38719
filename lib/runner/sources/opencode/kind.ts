import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { CliError, EXIT, TOKEN_HELP } from '../../cli/command';
import { interludeCommand } from '../../host/own-program.mjs';
import { connectionMessage } from '../../host/server-request';
import type { RunnerKind } from '../runner-kind';
import { errorText, OpencodeServer, type ServerAddress } from './opencode-server';
import { OpencodeSource } from './opencode-source';

const DEFAULT_URL = 'http://127.0.0.1:4096';
const USER = 'opencode';
const ANSWERS_WITHIN_MS = 3_000;

const HELP = `Usage: ${interludeCommand(['runner', 'opencode'])} [--url URL] [options]

Connects the sessions of an OpenCode server to the dashboard, with their subagents and between-run turns. Your terminals
work as before: start one with "opencode --port 4096", or start "opencode serve --port 4096" and join it with
"opencode attach". A terminal started without --port can't be reached.

  --url URL             OpenCode's address; default: ${DEFAULT_URL}
  --directory DIR       follow only sessions of this folder; default: all
  --session ID          follow only this session: OpenCode's id, or a name for a new one
  --prompt TEXT         first message of the session that --session names, sent once per session and text
  --password-file FILE  file with the server's password; default: OPENCODE_SERVER_PASSWORD, or the one in --url
  --agent ID            appear as this agent; default: from machine and port
  --record FILE         record the traffic with OpenCode for "replay", without secrets
  --dashboard URL       dashboard; default: INTERLUDE_URL, or the one on this machine
  --token-file F        ${TOKEN_HELP}

Sessions of the last day are shown from their beginning, older ones once something happens in them. Work that this
process missed is read from OpenCode's history.
INTERLUDE_WORKSPACE ({"mode":…,"deps":…,"symlinks":[…]}) names links into a main checkout; a session that --session creates
gets them with its first message.

Exit codes: 0 ended, 1 failed, 2 usage.`;

export const kind: RunnerKind = {
  features: {
    turns: true,
    betweenRun: true,
    cause: true,
    tasks: { partly: 'OpenCode runs subagents in the background, but no commands.' },
    taskEnds: true,
    taskOutput: { no: 'A subagent has no output of its own; its texts and tool calls are shown.' },
    subagents: true,
    permissions: true,
    questions: true,
    messages: true,
    attachments: {
      partly:
        'Images and PDFs depend on the model. Texts over 64 KiB are named as files on this machine’s disk, so a server elsewhere doesn’t get them.',
    },
    interrupt: true,
    end: { no: 'A session stays on OpenCode’s server until it is deleted in OpenCode.' },
    stop: true,
    wake: { needless: 'OpenCode wakes its agent by itself when a subagent ends.' },
    plans: true,
    edits: { partly: 'A file that is overwritten has no diff, because OpenCode doesn’t report its previous content.' },
    catchUp: true,
    shared: true,
  },
  urlNamesAgent: true,
  help: HELP,
  acceptsPrompt: true,
  flags: ['directory', 'password-file'],
  async prepare({ flag, usage, env }) {
    const { address, shownUrl } = await addressOf(flag('url') ?? DEFAULT_URL, flag('password-file'), env);
    const folder = flag('directory');
    const session = flag('session');
    if (flag('prompt') !== undefined && session === undefined) {
      throw usage('--prompt is for one session: name it with --session');
    }
    return {
      about: { kind: 'opencode', source: 'opencode', host: new URL(shownUrl).host, agentGoesOn: true },
      agentId: agentIdOf(shownUrl),
      callers: { by: 'call', listensAt: shownUrl, client: /^opencode/i },
      endWithinMs: 0,
      async open({ agentId, logger, record, workspaceNote }) {
        if (address.password !== null) logger.redactor.addSecret(address.password);
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
 * @returns the reason why the server does not respond, or null
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
  const problem = address.password === null ? 'requires a password' : 'rejected the password';
  throw new CliError(EXIT.failed, `OpenCode ${problem}; set OPENCODE_SERVER_PASSWORD or --password-file`);
}

async function passwordIn(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(EXIT.failed, `the password can't be read from ${file} (${error.code}); check --password-file`);
  });
  return text.trim();
}

/** Each server on a machine is an agent. */
function agentIdOf(shownUrl: string): string {
  const { hostname: name, port } = new URL(shownUrl);
  const isLocal = name === 'localhost' || name === '[::1]' || name.startsWith('127.');
  return `opencode-${port || '80'}@${isLocal ? hostname().split('.')[0] : name.replaceAll(/[^\w.-]+/g, '-')}`;
}
