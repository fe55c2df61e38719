import { setTimeout as pause } from 'node:timers/promises';
import { type Fields, fieldsOf, isObject, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import type { AcpAdapter } from '../../adapters/acp/acp-adapter';
import { AIR_CAPABILITIES, RAW_MESSAGES } from '../../adapters/acp/claude-extras';
import type { Choice } from '../../adapters/acp/settings';
import { RUNNER_VERSION } from '../../host/own-program.mjs';
import type { ToolServer } from '../../mcp/agent-tools';
import type { Outbox } from '../../outbox/outbox';
import type { Cursor } from '../../outbox/statements';
import { type AcpConnection, GONE, type RpcResponse } from './acp-connection';
import { type PromptCapabilities, promptCapabilities } from './prompts';

export interface SessionRequest {
  /** Session to continue; null for a new one. */
  nativeId: string | null;
  /** True to fail instead of creating a new session. */
  mustLoad: boolean;
  cwd: string;
  mode?: string | undefined;
  model?: string | undefined;
  /** Authentication method. */
  auth?: string | undefined;
  env: Record<string, string | undefined>;
  /** MCP server with Interlude's tools. */
  toolServer?: ToolServer | null;
}

export interface OpenedSession {
  nativeId: string;
  promptCapabilities: PromptCapabilities;
  /** True if the agent accepts a prompt before it has responded to the previous one. */
  acceptsParallelPrompts: boolean;
  /** `loaded` replayed its history, `resumed` did not, `new` has none. */
  how: 'new' | 'loaded' | 'resumed';
  /** Reason why the wanted session was not continued. */
  notLoaded: string | null;
  /** Reloads a lost session in the same process. @returns the error, or null */
  reload(): Promise<RpcResponse['error']>;
}

/** The agent can't be set up as requested; a restart would not help. */
export class SetupError extends Error {}

const PROTOCOL_VERSION = 1;
const AUTH_REQUIRED = -32_000;

/**
 * Sets up a session in a new process: `initialize`, authentication if required, loading or creating the session, mode
 * and model.
 * @see ACP v1, Initialization, Authentication, Session setup
 */
export async function openSession(
  connection: AcpConnection,
  adapter: Pick<AcpAdapter, 'settings' | 'replayEndsAt'>,
  wanted: SessionRequest,
): Promise<OpenedSession | null> {
  const response = await connection.request('initialize', {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: 'interlude', title: 'Interlude', version: RUNNER_VERSION },
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      // Otherwise, some agents write notices and compactions into their text.
      session: { notices: {}, compaction: {} },
      // codex-acp reports command output only to such clients.
      _meta: { ...AIR_CAPABILITIES, terminal_output_delta: true },
    },
  });
  if (isGone(response)) return null;
  if (response.error !== null) throw new SetupError(`the agent refused to initialize: ${response.error.message}`);
  const { agentCapabilities, authMethods, protocolVersion = PROTOCOL_VERSION } = response.result;
  if (protocolVersion !== PROTOCOL_VERSION) {
    throw new SetupError(
      `the agent speaks ACP version ${JSON.stringify(protocolVersion)}; install a version of the agent that speaks ${PROTOCOL_VERSION}`,
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
  const acceptsParallelPrompts = fieldsOf(fieldsOf(capabilities._meta).claudeCode).promptQueueing === true;
  return { ...opened, promptCapabilities: promptCapabilities(capabilities), acceptsParallelPrompts, reload };
}

/** Some agents keep replaying after their response; a prompt during that would look like part of the replay. */
async function waitForReplay(adapter: Pick<AcpAdapter, 'replayEndsAt'>, nativeId: string): Promise<void> {
  for (;;) {
    const wait = (adapter.replayEndsAt(nativeId) ?? 0) - Date.now();
    if (wait < 0) return;
    await pause(wait + 1);
  }
}

/** Makes claude-agent-acp report its tasks; others ignore it. */
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
    if (method === null) notLoaded = 'it can’t load sessions';
    else {
      const response = await signIn.withSignIn(() => connection.request(method, { sessionId: nativeId, ...about }));
      if (isGone(response)) return null;
      if (response.error === null) return { nativeId, how, notLoaded };
      notLoaded = response.error.message;
    }
    if (mustLoad) throw new SetupError(`the agent did not load session ${nativeId}: ${notLoaded}`);
  }
  const response = await signIn.withSignIn(() => connection.request('session/new', about));
  if (isGone(response)) return null;
  const created = textOf(response.result.sessionId);
  if (response.error !== null) throw new SetupError(`the agent could not open a session: ${response.error.message}`);
  if (created === null) throw new SetupError('the agent opened a session without an id');
  return { nativeId: created, how: 'new', notLoaded };
}

/** @see ACP v1, McpServer: every agent supports stdio */
function mcpServers(server: ToolServer | null | undefined) {
  if (!server) return [];
  return [{ ...server, env: Object.entries(server.env).map(([name, value]) => ({ name, value })) }];
}

interface AuthMethod {
  id: string;
  name: string;
  /** True if it uses an API key from the environment without prompting. */
  isKey: boolean;
}

/** Authenticates as requested or, if the agent requires it, with the only available API key. */
class SignIn {
  readonly #connection: AcpConnection;
  readonly #methods: AuthMethod[];
  #isDone = false;

  constructor(connection: AcpConnection, methods: readonly unknown[], { env }: SessionRequest) {
    this.#connection = connection;
    this.#methods = methods.flatMap((method) => {
      const { id, name, type, vars } = fieldsOf(method);
      const methodId = textOf(id);
      if (methodId === null) return [];
      const isSet = type !== 'env_var' || listOf(vars).every((one) => Boolean(env[textOf(fieldsOf(one).name) ?? '']));
      const isKey = isSet && /api[-_ ]?key/i.test(`${methodId} ${textOf(name) ?? ''}`);
      return [{ id: methodId, name: textOf(name) ?? methodId, isKey }];
    });
  }

  /** @throws SetupError if authentication fails */
  async with(id: string): Promise<void> {
    if (this.#methods.length > 0 && !this.#methods.some((one) => one.id === id)) {
      throw new SetupError(`the agent has no authentication method "${id}"; ${this.#choices()}`);
    }
    const response = await this.#connection.request('authenticate', { methodId: id });
    if (response.error !== null && response.error.isGone !== true) {
      throw new SetupError(`signing in with "${id}" failed: ${response.error.message}`);
    }
    this.#isDone = true;
  }

  /** Sends a request. If the agent requires it, authenticates and sends the request again. */
  async withSignIn(send: () => Promise<RpcResponse>): Promise<RpcResponse> {
    const response = await send();
    if (response.error?.code !== AUTH_REQUIRED || this.#isDone) return response;
    const [only, ...others] = this.#methods.filter(({ isKey }) => isKey);
    if (only === undefined || others.length > 0) {
      throw new SetupError(`the agent requires signing in (${response.error.message}); ${this.#choices()}`);
    }
    await this.with(only.id);
    return await send();
  }

  #choices(): string {
    const list = this.#methods.map(({ id, name }) => `${id} (${name})`).join(', ');
    return list === '' ? 'sign in with the agent’s own command first' : `choose one with --auth: ${list}`;
  }
}

/** @throws SetupError if the agent does not offer or accept the option */
async function selectOption(
  connection: AcpConnection,
  sessionId: string,
  what: 'mode' | 'model',
  wanted: string | undefined,
  offered: readonly Choice[],
  configId: string | null,
): Promise<void> {
  if (wanted === undefined) return;
  if (offered.length === 0) throw new SetupError(`the agent has no ${what} to choose; omit --${what}`);
  const chosen = offered.find(({ id, name }) => id === wanted || name === wanted);
  if (chosen === undefined) {
    const list = offered.map(({ id }) => id).join(', ');
    throw new SetupError(`the agent has no ${what} "${wanted}"; it offers: ${list}`);
  }
  const response =
    configId === null
      ? await connection.request(`session/set_${what}`, { sessionId, [`${what}Id`]: chosen.id })
      : await connection.request('session/set_config_option', { sessionId, configId, value: chosen.id });
  if (response.error !== null && response.error.isGone !== true) {
    throw new SetupError(`the agent refused the ${what} "${wanted}": ${response.error.message}`);
  }
}

function isGone(response: RpcResponse): boolean {
  return response.error?.isGone === true;
}

/** Stored state of a session, for the next runner. */
export interface AcpSession {
  sessionId: string;
  /** Session id of the agent; null until it has one. */
  nativeId: string | null;
  /** Note prepended to the first message; null without one. */
  note: string | null;
  cwd: string;
  /** PID of the running agent. */
  pid: number | null;
  /** True while the runner runs. Still true at startup after a kill. */
  running: boolean;
}

const SESSION = 'acp-session:';

export function sessionCursor(memory: AcpSession): Cursor {
  return { name: `${SESSION}${memory.sessionId}`, value: JSON.stringify(memory) };
}

/** Reads all sessions of this outbox. */
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
