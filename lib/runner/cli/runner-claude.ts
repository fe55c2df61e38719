import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { cutText } from '@/lib/protocol/cut-text';
import { claimOutbox, type RunnerOutbox } from '@/lib/runner/host/claim-outbox';
import type { RunnerHost } from '@/lib/runner/host/runner-host';
import { troubleInWords } from '@/lib/runner/logger/delivery-journal';
import { createLogger } from '@/lib/runner/logger/logger';
import { Redactor } from '@/lib/runner/logger/redactor';
import type { OutboxNotice } from '@/lib/runner/outbox/delivery';
import type { OutboxStatus } from '@/lib/runner/outbox/outbox';
import { interludeCommand } from '@/lib/runner/shown-command.mjs';
import { claudeHost } from '@/lib/runner/sources/claude/claude-host';
import { type ClaudeMemory, readInHand, readMemories, recall } from '@/lib/runner/sources/claude/claude-memory';
import { CLAUDE_SDK, PERMISSION_MODES, type PermissionMode } from '@/lib/runner/sources/claude/claude-sdk';
import { findConversation } from '@/lib/runner/sources/claude/conversation-file';
import { NOTHING_OPEN } from '@/lib/runner/sources/claude/live-facts';
import { withDeadline } from '@/lib/runner/with-deadline';
import { endSignals } from './end-signals';
import { ensureClaudeSdk } from './ensure-claude-sdk';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { fired } from './fired';
import { requireIds } from './id-option';
import { fromInterlude, openDataDir, serverEndpoint, serverKey } from './local-server';
import { logLevelOf } from './log-level';

export const RUNNER_CLAUDE_HELP = `Usage: ${interludeCommand(['runner', 'claude'])} [options]

Runs a Claude Code session and connects it to the dashboard: what people write there reaches the agent, what the agent
does, in a turn and between turns, reaches the dashboard. Prints the address of the session.

  --session ID            the session to carry; one this agent has carried is gone on with; default: a new one
  --resume ID             go on with a session: the dashboard's id, or Claude Code's own
  --agent ID              the agent to appear as; default: made of the folder's name and the machine
  --cwd DIR               the folder to work in; default: this one
  --model M               the model; default: Claude Code's
  --permission-mode MODE  ${PERMISSION_MODES.join(', ')}
  --answer-within S       seconds a permission or a question waits for a person; default 600
  --end-within S          seconds the agent may go on after Ctrl-C; default 30
  --sdk DIR               the folder whose node_modules has the Agent SDK; default: INTERLUDE_CLAUDE_SDK_DIR, else
                          agents in Interlude's data folder
  --yes                   install the Agent SDK without asking, where it is missing
  --url URL               the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token T               its token; default: INTERLUDE_TOKEN, else the one of this machine

Needs the package ${CLAUDE_SDK}: where that is missing it asks, and installs it into the folder
of --sdk. The runner itself runs nothing from the folder it works in, but Claude Code does: it heeds the settings and hooks
of the project it is in.
Ctrl-C lets the agent finish what it is at; a second one ends it now. What the dashboard has not got by then is kept and
sent by the next run.

Exit codes: 0 ended, 1 failed, 2 usage, 3 the Agent SDK is not installed.`;

type Environment = Record<string, string | undefined>;

const FLUSH_MS = 5_000;
/** How long the address waits for the dashboard to know the session. */
const ARRIVAL_MS = 3_000;

export async function runnerClaude(argv: string[], env: Environment): Promise<ExitCode> {
  const options = readOptions(argv, env);
  const cwd = await folderOf(options.cwd);
  const home = openDataDir(env);
  const installed = await ensureClaudeSdk(home, options);
  const redactor = new Redactor();
  const endpoint = serverEndpoint(options, env, (token) => redactor.learn(token));
  let host: RunnerHost | null = null;
  // An outbox that is found damaged says so before there is a log to write it to.
  const early: OutboxNotice[] = [];
  const trouble = new TroubleLine();
  const claimed = await claimOutbox({
    folder: join(home, 'outboxes'),
    serverKey: serverKey(options, env),
    agentId: options.agent,
    baseId: agentIdOf(cwd),
    carries: async (outbox) => {
      const wanted = options.resume ?? options.session;
      return wanted !== undefined && recall(await readMemories(outbox), wanted) !== undefined;
    },
    endpoint,
    onStatus: (status) => {
      trouble.status(status);
      host?.outboxChanged(status);
    },
    onNotice: (notice) => (host === null ? early.push(notice) : host.outboxNotice(notice)),
  });
  const { outbox, agentId } = claimed;
  const logger = createLogger({
    agentId,
    dir: join(home, 'logs'),
    level: logLevelOf(env),
    redactor,
    onRecord: (entry) => host?.logged(entry),
  });
  const { ends, hurries, release } = endSignals();
  try {
    const memory = await sessionToCarry(claimed, options, cwd, env);
    const inHand = await readInHand(outbox, memory.sessionId);
    let overFor: string | null = null;
    const over = new AbortController();
    host = claudeHost({
      kind: 'claude',
      about: { source: 'sdk', cwd: memory.cwd, ...(options.model === undefined ? {} : { model: options.model }) },
      installed,
      agentId,
      outbox,
      endpoint,
      logger,
      dataDir: home,
      memory,
      inHand,
      env,
      model: options.model,
      permissionMode: options.permissionMode,
      answerWithinMs: options.answerWithinMs,
      onOver: (reason) => {
        overFor = reason;
        over.abort();
      },
    });
    await host.start();
    for (const notice of early) host.outboxNotice(notice);
    // Whoever follows the address finds the session, unless there is nobody to show it.
    await withDeadline(ARRIVAL_MS, ends, (until) => outbox.settled(until));
    const { url } = await endpoint();
    process.stdout.write(`${url.replace(/\/+$/, '')}/sessions/${encodeURIComponent(memory.sessionId)}\n`);
    await fired(AbortSignal.any([ends, over.signal]));
    if (ends.aborted) say('ending; what the agent is at is waited for, Ctrl-C again ends it now');
    hurries.addEventListener('abort', () => host?.hurry());
    const { waiting } = await host.close(overFor === null ? options.endWithinMs : 0, FLUSH_MS);
    if (waiting > 0) say(`${waiting} records are kept in the outbox, and the next run sends them`);
    if (overFor !== null) throw new CliError(EXIT.failed, overFor);
    return EXIT.done;
  } finally {
    release();
    await outbox.stop();
    logger.close();
  }
}

/** The session named, where this agent has carried it; else a new one, or a conversation of Claude Code's own. */
async function sessionToCarry(
  { outbox }: RunnerOutbox,
  { session, resume }: { session: string | undefined; resume: string | undefined },
  cwd: string,
  env: Environment,
): Promise<ClaudeMemory> {
  const wanted = resume ?? session;
  const known = wanted === undefined ? undefined : recall(await readMemories(outbox), wanted);
  if (known !== undefined) {
    if (session !== undefined && known.sessionId !== session) {
      throw new CliError(EXIT.failed, `${resume} is session ${known.sessionId} already; leave --session out`);
    }
    return { ...known, cwd };
  }
  const fresh = { pid: null, open: NOTHING_OPEN, running: false, cwd };
  if (resume === undefined) {
    return { ...fresh, sessionId: session ?? randomUUID(), conversationId: randomUUID() };
  }
  if ((await findConversation(env, resume)) === null) {
    throw new CliError(EXIT.failed, `there is no session ${resume}, neither of this agent nor of Claude Code`);
  }
  return { ...fresh, sessionId: session ?? resume, conversationId: resume };
}

/** Tells what people would otherwise wonder about: the dashboard can't be reached, or refuses the token. */
class TroubleLine {
  #kind: string | null = null;

  status({ trouble, state, waiting }: OutboxStatus): void {
    if (state === 'stopped') return;
    const kind = trouble?.kind ?? null;
    if (kind === this.#kind || (kind === null && waiting > 0 && state !== 'idle')) return;
    if (trouble !== null && kind !== 'fenced') {
      say(`${troubleInWords(trouble)}; the agent goes on, and what it does is kept`);
    }
    if (trouble === null) say('the dashboard is back');
    this.#kind = kind;
  }
}

function say(message: string): void {
  process.stderr.write(`interlude: ${message}\n`);
}

/** Two machines, or two folders of one name, are two agents. */
function agentIdOf(cwd: string): string {
  const folder =
    cwd
      .split(/[/\\]/)
      .at(-1)
      ?.replaceAll(/[^\w.-]+/g, '-') || 'root';
  return `${cutText(folder, 80)}@${hostname().split('.')[0]}`;
}

async function folderOf(path: string): Promise<string> {
  const folder = resolve(path);
  const isFolder = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isFolder) throw new CliError(EXIT.failed, `${folder} is no folder`);
  return folder;
}

function readOptions(argv: string[], env: Environment) {
  const values = parse();
  const { session, agent, resume } = values;
  requireIds({ session, agent, resume }, 'runner claude');
  const mode = values['permission-mode'];
  if (mode !== undefined && !(PERMISSION_MODES as readonly string[]).includes(mode)) {
    throw usageError(`--permission-mode is one of ${PERMISSION_MODES.join(', ')}`, 'runner claude');
  }
  const address = values.url ?? env.INTERLUDE_URL;
  if (address !== undefined && !/^https?:$/.test(URL.canParse(address) ? new URL(address).protocol : '')) {
    throw usageError(`${address} is not an http address`, 'runner claude');
  }
  return {
    session: values.session,
    resume: values.resume,
    agent: values.agent,
    cwd: values.cwd ?? '.',
    model: values.model,
    permissionMode: mode as PermissionMode | undefined,
    sdk: sdkFolder(),
    answerWithinMs: seconds('answer-within', values['answer-within'] ?? '600', 86_400),
    endWithinMs: seconds('end-within', values['end-within'] ?? '30', 3_600),
    url: values.url,
    token: values.token,
    yes: values.yes === true,
  };

  /** Said with the command, it is meant from here; in the environment, which holds everywhere, from nowhere else. */
  function sdkFolder(): string | undefined {
    if (values.sdk !== undefined) return resolve(values.sdk);
    return env.INTERLUDE_CLAUDE_SDK_DIR ? fromInterlude(env.INTERLUDE_CLAUDE_SDK_DIR) : undefined;
  }

  function seconds(name: string, text: string, most: number): number {
    const value = Number(text);
    if (!(text.trim() !== '' && value >= 0 && value <= most)) {
      throw usageError(`--${name} is a number of seconds, at most ${most}`, 'runner claude');
    }
    return value * 1_000;
  }

  function parse() {
    const text = { type: 'string' } as const;
    const names = ['session', 'resume', 'agent', 'cwd', 'model', 'permission-mode', 'sdk'] as const;
    const more = ['answer-within', 'end-within', 'url', 'token'] as const;
    const options = Object.fromEntries([...names, ...more].map((name) => [name, text]));
    try {
      const { values } = parseArgs({ args: argv, options: { ...options, yes: { type: 'boolean' } } });
      return values as Partial<Record<(typeof names)[number] | (typeof more)[number], string> & { yes: boolean }>;
    } catch (error) {
      throw usageError((error as Error).message.split('. ')[0] ?? '', 'runner claude');
    }
  }
}
