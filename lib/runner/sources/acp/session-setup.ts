import { setTimeout as pause } from 'node:timers/promises';
import { type Fields, fieldsOf, isObject, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import type { AcpAdapter } from '../../adapters/acp/acp-adapter';
import { AIR_CAPABILITIES, RAW_MESSAGES } from '../../adapters/acp/claude-extras';
import type { Choice } from '../../adapters/acp/settings';
import type { ToolServer } from '../../mcp/tool-server';
import type { Outbox } from '../../outbox/outbox';
import type { Cursor } from '../../outbox/statements';
import { RUNNER_VERSION } from '../../version';
import { type AcpConnection, GONE, type RpcAnswer } from './acp-connection';
import { type PromptCapabilities, promptCapabilities } from './prompts';

/**
 * From a process that was just started to a session that can be prompted: `initialize`, signing in where that is asked
 * for, the session as it was or a new one, its mode and its model.
 *
 * @see ACP v1, Initialization, Authentication, Session setup
 */
export interface SessionRequest {
  /** To go on with; null: a new one. */
  nativeId: string | null;
  /** A new one will not do. */
  mustLoad: boolean;
  cwd: string;
  mode?: string | undefined;
  model?: string | undefined;
  /** By which method to sign in. */
  auth?: string | undefined;
  env: Record<string, string | undefined>;
  /** With Interlude's tools. */
  toolServer?: ToolServer | null;
}

export interface OpenedSession {
  nativeId: string;
  takes: PromptCapabilities;
  /** Further prompts may be sent while one is unanswered. */
  takesPromptsAtOnce: boolean;
  /** `loaded` has told its past once more, `resumed` has not; `new` knows nothing of what was before. */
  how: 'new' | 'loaded' | 'resumed';
  /** Why it could not go on with the one that was wanted. */
  notLoaded: string | null;
  /** Takes it up again in the same process, which has lost it. @returns why that failed, or null */
  reload(): Promise<RpcAnswer['error']>;
}

/** The agent can't be used as it was asked for: to start it again helps nobody. */
export class SetupError extends Error {}

const PROTOCOL_VERSION = 1;
const AUTH_REQUIRED = -32_000;

export async function openSession(
  connection: AcpConnection,
  adapter: Pick<AcpAdapter, 'settings' | 'replayEndsAt'>,
  wanted: SessionRequest,
): Promise<OpenedSession | null> {
  const said = await connection.request('initialize', {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: 'interlude', title: 'Interlude', version: RUNNER_VERSION },
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      // Else some agents put both into the text of the agent.
      session: { notices: {}, compaction: {} },
      // codex-acp tells what commands print to no other client that it tells of tasks.
      _meta: { ...AIR_CAPABILITIES, terminal_output_delta: true },
    },
  });
  if (isGone(said)) return null;
  if (said.error !== null) throw new SetupError(`the agent refused to begin: ${said.error.message}`);
  const { agentCapabilities, authMethods, protocolVersion = PROTOCOL_VERSION } = said.result;
  if (protocolVersion !== PROTOCOL_VERSION) {
    throw new SetupError(
      `the agent speaks version ${JSON.stringify(protocolVersion)} of ACP, and this runner version ${PROTOCOL_VERSION}: install a version of the agent that speaks ${PROTOCOL_VERSION}`,
    );
  }
  const capabilities = fieldsOf(agentCapabilities);
  const signIn = new SignIn(connection, listOf(authMethods), wanted);
  if (wanted.auth !== undefined) await signIn.with(wanted.auth);
  const open = async (wanted: SessionRequest) => {
    const opened = await createOrLoadSession(connection, capabilities, wanted, signIn);
    if (opened === null) return null;
    if (opened.how === 'loaded') await waitForReplay(adapter, opened.nativeId);
    const settings = adapter.settings(opened.nativeId);
    if (settings !== null) {
      await selectOption(connection, opened.nativeId, 'mode', wanted.mode, settings.modes, settings.configIds.mode);
      await selectOption(connection, opened.nativeId, 'model', wanted.model, settings.models, settings.configIds.model);
    }
    return opened;
  };
  const opened = await open(wanted);
  if (opened === null) return null;
  const reload = async () => {
    try {
      const again = await open({ ...wanted, nativeId: opened.nativeId, mustLoad: true });
      return again === null ? GONE.error : null;
    } catch (error) {
      if (error instanceof SetupError) return { code: null, message: error.message };
      throw error;
    }
  };
  const takesPromptsAtOnce = fieldsOf(fieldsOf(capabilities._meta).claudeCode).promptQueueing === true;
  return { ...opened, takes: promptCapabilities(capabilities), takesPromptsAtOnce, reload };
}

/** The replay of some agents goes on behind their answer, and a prompt in the middle of it would be taken for part of it. */
async function waitForReplay(adapter: Pick<AcpAdapter, 'replayEndsAt'>, nativeId: string): Promise<void> {
  for (;;) {
    const wait = (adapter.replayEndsAt(nativeId) ?? 0) - Date.now();
    if (wait < 0) return;
    await pause(wait + 1);
  }
}

/** With claude-agent-acp it also tells of its tasks; others overlook that. */
const EXTRAS = { claudeCode: { emitRawSDKMessages: RAW_MESSAGES } };

async function createOrLoadSession(
  connection: AcpConnection,
  capabilities: Fields,
  { nativeId, mustLoad, cwd, toolServer }: SessionRequest,
  signIn: SignIn,
): Promise<Pick<OpenedSession, 'nativeId' | 'how' | 'notLoaded'> | null> {
  const about = { cwd, mcpServers: mcpServers(toolServer), _meta: EXTRAS };
  let notLoaded: string | null = null;
  if (nativeId !== null) {
    const [method, how] =
      capabilities.loadSession === true
        ? (['session/load', 'loaded'] as const)
        : isObject(fieldsOf(capabilities.sessionCapabilities).resume)
          ? (['session/resume', 'resumed'] as const)
          : [null, null];
    if (method === null) notLoaded = 'it can’t go on with a session of before';
    else {
      const answer = await signIn.first(() => connection.request(method, { sessionId: nativeId, ...about }));
      if (isGone(answer)) return null;
      if (answer.error === null) return { nativeId, how, notLoaded };
      notLoaded = answer.error.message;
    }
    if (mustLoad) throw new SetupError(`the agent did not take up session ${nativeId}: ${notLoaded}`);
  }
  const answer = await signIn.first(() => connection.request('session/new', about));
  if (isGone(answer)) return null;
  const created = textOf(answer.result.sessionId);
  if (answer.error !== null) throw new SetupError(`the agent opened no session: ${answer.error.message}`);
  if (created === null) throw new SetupError('the agent opened a session without saying which');
  return { nativeId: created, how: 'new', notLoaded };
}

/** @see ACP v1, McpServer: each agent has to take one on stdio */
function mcpServers(server: ToolServer | null | undefined) {
  if (!server) return [];
  return [{ ...server, env: Object.entries(server.env).map(([name, value]) => ({ name, value })) }];
}

interface AuthMethod {
  id: string;
  name: string;
  /** It takes what is in the environment, and asks nobody. */
  isKey: boolean;
}

/** How the agent is signed in: as it was asked for, or, where it insists, with the one key that is there for it. */
class SignIn {
  readonly #connection: AcpConnection;
  readonly #methods: AuthMethod[];
  #isDone = false;

  constructor(connection: AcpConnection, methods: readonly unknown[], { env }: SessionRequest) {
    this.#connection = connection;
    this.#methods = methods.flatMap((method) => {
      const { id, name, type, vars } = fieldsOf(method);
      const said = textOf(id);
      if (said === null) return [];
      const isSet = type !== 'env_var' || listOf(vars).every((one) => Boolean(env[textOf(fieldsOf(one).name) ?? '']));
      const isKey = isSet && /api[-_ ]?key/i.test(`${said} ${textOf(name) ?? ''}`);
      return [{ id: said, name: textOf(name) ?? said, isKey }];
    });
  }

  /** @throws SetupError if it does not sign in with it */
  async with(id: string): Promise<void> {
    if (this.#methods.length > 0 && !this.#methods.some((one) => one.id === id)) {
      throw new SetupError(`the agent has no way "${id}" to sign in; ${this.#choices()}`);
    }
    const answer = await this.#connection.request('authenticate', { methodId: id });
    if (answer.error !== null && answer.error.isGone !== true) {
      throw new SetupError(`the agent was not signed in with "${id}": ${answer.error.message}`);
    }
    this.#isDone = true;
  }

  /** Asks; where the agent wants to be signed in first, does that and asks again. */
  async first(ask: () => Promise<RpcAnswer>): Promise<RpcAnswer> {
    const answer = await ask();
    if (answer.error?.code !== AUTH_REQUIRED || this.#isDone) return answer;
    const [only, ...others] = this.#methods.filter(({ isKey }) => isKey);
    if (only === undefined || others.length > 0) {
      throw new SetupError(`the agent wants to be signed in first (${answer.error.message}); ${this.#choices()}`);
    }
    await this.with(only.id);
    return await ask();
  }

  #choices(): string {
    const list = this.#methods.map(({ id, name }) => `${id} (${name})`).join(', ');
    return list === '' ? 'it names no way to do that' : `choose one with --auth: ${list}`;
  }
}

/** @throws SetupError if the agent does not offer it, or refuses it */
async function selectOption(
  connection: AcpConnection,
  sessionId: string,
  what: 'mode' | 'model',
  wanted: string | undefined,
  offered: readonly Choice[],
  configId: string | null,
): Promise<void> {
  if (wanted === undefined) return;
  if (offered.length === 0) throw new SetupError(`the agent offers no choice of a ${what}; leave --${what} out`);
  const chosen = offered.find(({ id, name }) => id === wanted || name === wanted);
  if (chosen === undefined) {
    const list = offered.map(({ id }) => id).join(', ');
    throw new SetupError(`the agent has no ${what} "${wanted}"; it offers: ${list}`);
  }
  const answer =
    configId === null
      ? await connection.request(`session/set_${what}`, { sessionId, [`${what}Id`]: chosen.id })
      : await connection.request('session/set_config_option', { sessionId, configId, value: chosen.id });
  if (answer.error !== null && answer.error.isGone !== true) {
    throw new SetupError(`the agent did not take the ${what} "${wanted}": ${answer.error.message}`);
  }
}

function isGone(answer: RpcAnswer): boolean {
  return answer.error?.isGone === true;
}

/** What a runner must know of a session that an earlier one ran, in the outbox's file. */
export interface AcpSession {
  sessionId: string;
  /** The agent's own name for it; null until it has one. */
  nativeId: string | null;
  /** What goes, or went, before the first message to that; null: nothing. */
  note: string | null;
  cwd: string;
  /** The agent's process, while it runs. */
  pid: number | null;
  /** The runner is at it. Still set at a start: the one before was killed. */
  running: boolean;
}

const SESSION = 'acp-session:';

export function sessionCursor(memory: AcpSession): Cursor {
  return { name: `${SESSION}${memory.sessionId}`, value: JSON.stringify(memory) };
}

/** All sessions this outbox has carried. */
export async function readSessions(outbox: Pick<Outbox, 'cursors'>): Promise<AcpSession[]> {
  return [...(await outbox.cursors(SESSION)).values()].flatMap((value) => {
    const { sessionId, nativeId, note, cwd, pid, running } = fieldsOf(parseJson(value));
    const id = textOf(sessionId);
    if (id === null) return [];
    return {
      sessionId: id,
      nativeId: textOf(nativeId),
      note: textOf(note),
      cwd: textOf(cwd) ?? '.',
      pid: typeof pid === 'number' ? pid : null,
      running: running === true,
    };
  });
}

/** The session that a name means: the dashboard's, or the agent's own. */
export function findSession(memories: readonly AcpSession[], name: string): AcpSession | undefined {
  return memories.find(({ sessionId }) => sessionId === name) ?? memories.find(({ nativeId }) => nativeId === name);
}
