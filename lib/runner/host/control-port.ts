import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Fields, fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import { HOOK_FATAL } from '@interlude/protocol/insight';
import { parseWellFormed } from '@interlude/protocol/json';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { LOG_LEVELS } from '@interlude/protocol/vocabulary';
import { type LevelSwitch, parseLevel } from '../logger/level-switch';
import type { Logger } from '../logger/logger';
import { callTool, isToolName, type SessionTools, type ToolName } from '../mcp/agent-tools';
import { removeControlFile, writeControlFile } from './control-file';

export interface ControlPortOptions {
  /** @see controlPath */
  file: string;
  handlers: ControlHandlers;
  onError?: (message: string) => void;
}

/** Room for a prompt with a pasted file. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const REQUEST_MS = 5_000;

/**
 * The HTTP server for an agent's hooks and tools, on loopback, with its own port and secret.
 *
 * Ordering: a request is handled as soon as it is read. Hooks that run at the same time may arrive in either order.
 * Failure: answers come from memory, at most after one write to the outbox. Only requests with `within` wait, up to
 * that time or until the caller disconnects. A handler that throws is answered 500 and logged. Requests that are too
 * large, too slow or not from this machine never reach a handler.
 */
export class ControlPort {
  readonly url: string;
  readonly secret: string;
  readonly #server: Server;
  readonly #file: string;

  private constructor(server: Server, url: string, secret: string, file: string) {
    this.#server = server;
    this.url = url;
    this.secret = secret;
    this.#file = file;
  }

  static async open({ file, handlers, onError }: ControlPortOptions): Promise<ControlPort> {
    const secret = randomBytes(32).toString('base64url');
    const expected = digest(`Bearer ${secret}`);
    let host = '';
    const server = createServer((request, response) => {
      void handle(request, response).catch((error) => {
        onError?.(`the control port failed on ${request.method} ${request.url}: ${String(error)}`);
        reply(response, { status: 500, body: { error: 'the companion failed; see its log' } });
      });
    });
    server.requestTimeout = REQUEST_MS;
    server.headersTimeout = REQUEST_MS;
    server.keepAliveTimeout = 1_000;
    server.maxConnections = 256;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const port = new ControlPort(server, `http://${host}`, secret, file);
    try {
      await writeControlFile(file, { url: port.url, secret, pid: process.pid });
    } catch (error) {
      server.close();
      throw error;
    }
    return port;

    async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
      // Pages in a browser can reach loopback too, with another host name (DNS rebinding).
      if (request.headers.host !== host) return reply(response, { status: 421, body: { error: 'unknown host' } });
      const authorization = request.headers.authorization ?? '';
      const isOpen = timingSafeEqual(digest(authorization), expected);
      const ticketOf = isOpen ? null : (handlers.sessionOf?.(authorization.replace(/^Bearer /, '')) ?? null);
      if (!isOpen && ticketOf === null) {
        return reply(response, { status: 401, body: { error: 'the secret is missing or wrong' } });
      }
      const body = await readBody(request);
      if (body === null) return reply(response, { status: 413, body: { error: 'the request is too large' } });
      const { pathname, searchParams } = new URL(request.url ?? '/', `http://${host}`);
      const method = request.method ?? 'GET';
      const disconnected = new AbortController();
      response.once('close', () => response.writableFinished || disconnected.abort());
      const { signal } = disconnected;
      reply(
        response,
        await handleControlRequest({ method, path: pathname, query: searchParams, body, ticketOf, signal }, handlers),
      );
    }
  }

  /** Cuts off running requests. */
  async close(): Promise<void> {
    await removeControlFile(this.#file, this.secret);
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

function reply(response: ServerResponse, { status, body }: ControlResponse): void {
  if (response.headersSent) return;
  const isText = typeof body === 'string';
  const text = isText ? body : `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'content-type': isText ? 'text/plain; charset=utf-8' : 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  });
  response.end(text);
}

async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    // Continues to read, because a client that is cut off while sending never sees the response.
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk as Buffer);
    else chunks.length = 0;
    if (bytes > 8 * MAX_BODY_BYTES) break;
  }
  return bytes > MAX_BODY_BYTES ? null : Buffer.concat(chunks).toString('utf8');
}

/** Gives both sides of the comparison the same length. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/**
 * The handlers behind the routes. A hook forwards its stdin unchanged and prints the answer. A handler is absent if the
 * agent itself reports the same events; calls from the user's hooks are then ignored.
 */
export interface ControlHandlers {
  /** @returns the hook's output */
  hook?(call: HookCall): string | Promise<string>;
  /** `idle` comes from the EXIT trap of the stop hook, `busy` from hooks that start a turn. */
  status?(state: string, about: Fields, at: number | null): void;
  obligations(): readonly object[];
  sessionTurn?(about: Fields): void;
  userPrompt?(about: Fields): void;
  sessionEnd?(about: Fields): void;
  /** Called when a hook failed; `error` is `exit N: <step>`. */
  hookFatal(failure: HookFailure, about: Fields): void;
  logLevel: LevelSwitch;
  /** Finds the agent that calls a tool. */
  toolOwner(caller: ToolCaller): Promise<ToolOwner>;
  /** @returns the session of a ticket; null if it is invalid */
  sessionOf?(ticket: string): string | null;
  /** @returns null if no process of the caller is an agent of this runner */
  wait?(call: WaitCall): Promise<WaitResponse> | null;
  /** Confirms that the message of a wait was printed. @returns false if the claim is unknown */
  confirmWait?(claim: string): Promise<boolean>;
}

/** A tool call, with the evidence of its agent. */
export interface ToolCaller {
  tool: ToolName;
  input: unknown;
  /** The processes above the MCP server, the nearest first. */
  pids: readonly number[];
  /** The name of the MCP client; null if unknown. */
  client: string | null;
  /** Strings in the request's `_meta` that may be ids of the call. */
  ids: readonly string[];
  /** The session of the ticket that authorized the call. */
  ticketOf: string | null;
}

/** `at`: the index of the agent's process in `pids`; null if it is not among them. */
export type ToolOwner = { at: number; tools: SessionTools } | { at: number | null; refusal: string };

/** A long poll of an idle agent for a message. */
export interface WaitCall {
  /** The caller's processes, the nearest first. */
  pids: readonly number[];
  /** Identifies one wait across its polls. */
  waitId: string;
  withinMs: number;
  /** Aborts when the caller disconnects. */
  signal: AbortSignal;
}

export type WaitResponse =
  /** A message to print, and then to confirm with its claim. */
  | { kind: 'message'; claim: string; text: string }
  /** No message yet. */
  | { kind: 'again' }
  /** No message will arrive; the wait has ended. */
  | { kind: 'over'; reason: string };

export interface HookCall {
  /** `hook_event_name` as installed. */
  event: string;
  /** The hook's stdin. */
  input: Fields;
  /** The agent's process, if known. */
  pid: number | null;
  /** Start time of the hook, if known. Epoch milliseconds. */
  at: number | null;
  /** Entry point of the agent, if known: `cli` in a terminal. */
  from?: string | null;
  /** Time for which the hook waits for the answer; null if it does not wait. */
  withinMs: number | null;
  /** Aborts when the hook disconnects. */
  signal: AbortSignal;
}

interface ControlRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  body: string;
  /**
   * The session of the ticket that authorized the request, which is valid for its tools only. Null with the port's own
   * secret.
   */
  ticketOf: string | null;
  /** Aborts when the caller disconnects. */
  signal: AbortSignal;
}

/** A hook prints a text body as it is; an object is sent as JSON. */
interface ControlResponse {
  status: number;
  body: string | object;
}

const OK: ControlResponse = { status: 200, body: { ok: true } };
const MAX_PIDS = 16;
const MAX_WAIT_MS = 24 * 60 * 60_000;
const MAX_IDS = 16;
export const NOT_FOLLOWED = 'no session of this agent is followed here';
const NOT_FOLLOWED_ANSWER: ControlResponse = { status: 404, body: { error: NOT_FOLLOWED } };
const TICKET_FORBIDDEN: ControlResponse = {
  status: 403,
  body: { error: 'a ticket is valid for the tools of its session only' },
};
const BAD_LEVEL = { error: `level must be one of: ${LOG_LEVELS.join(', ')}` };

type Route = (request: ControlRequest, about: Fields, handlers: ControlHandlers) => ControlResponse;

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['GET /reply-obligations', (_request, _about, handlers) => ({ status: 200, body: [...handlers.obligations()] })],
  [
    'POST /status',
    ({ query }, about, handlers) => {
      const state = query.get('state') ?? textOf(about.state);
      if (state === null) return { status: 400, body: { error: 'state is missing' } };
      handlers.status?.(state, about, atIn(query));
      return OK;
    },
  ],
  ['POST /session-turn', (_request, about, handlers) => done(() => handlers.sessionTurn?.(about))],
  ['POST /user-prompt', (_request, about, handlers) => done(() => handlers.userPrompt?.(about))],
  ['POST /session-end', (_request, about, handlers) => done(() => handlers.sessionEnd?.(about))],
  [
    'GET /log-level',
    (_request, _about, { logLevel }) => ({ status: 200, body: { level: logLevel.get(), levels: LOG_LEVELS } }),
  ],
  [
    'POST /log-level',
    (_request, about, { logLevel }) => {
      const level = parseLevel(about.level);
      const ttl = numberOf(about.ttlSeconds);
      // An explicit null resets the level.
      if (level === null && about.level !== null) return { status: 400, body: BAD_LEVEL };
      const change = logLevel.set(level, { by: 'control-port', ...(ttl === null ? {} : { ttlMs: ttl * 1_000 }) });
      return { status: 200, body: { ok: true, level: change.level, previous: change.previous } };
    },
  ],
  [
    'POST /hook-fatal',
    ({ query }, about, handlers) => {
      const hook = query.get('hook') ?? textOf(about.hook) ?? '';
      const error = query.get('error') ?? textOf(about.error) ?? '';
      return done(() => handlers.hookFatal(hookFailure(hook, error), about));
    },
  ],
]);

/** Calls the handler synchronously, so that requests are handled in order of arrival. */
async function handleControlRequest(request: ControlRequest, handlers: ControlHandlers): Promise<ControlResponse> {
  const about = parse(request.body);
  const tool = /^\/tools\/([a-z_]{1,64})$/.exec(request.path)?.[1];
  if (tool !== undefined && request.method === 'POST') return await answerTool(tool, request, handlers);
  if (request.ticketOf !== null) return TICKET_FORBIDDEN;
  const event = /^\/hooks\/([A-Za-z]{1,64})$/.exec(request.path)?.[1];
  if (event !== undefined && request.method === 'POST') {
    const pid = Number(request.query.get('pid'));
    const by = Number.isSafeInteger(pid) && pid > 1 ? pid : null;
    const { query, signal } = request;
    const from = query.get('from') || null;
    const call: HookCall = { event, input: about, pid: by, at: atIn(query), from, withinMs: withinIn(query), signal };
    return { status: 200, body: (await handlers.hook?.(call)) ?? '' };
  }
  if (request.method === 'POST' && request.path === '/wait') return await answerWait(request, handlers);
  if (request.method === 'POST' && request.path === '/wait/taken') {
    const ok = (await handlers.confirmWait?.(request.query.get('claim') ?? '')) ?? false;
    return ok ? OK : { status: 404, body: { error: 'no wait has this claim' } };
  }
  const route = ROUTES.get(`${request.method} ${request.path}`);
  if (route) return route(request, about, handlers);
  const known = [...ROUTES.keys()].some((key) => key.endsWith(` ${request.path}`));
  return known
    ? { status: 405, body: { error: `${request.path} does not allow ${request.method}` } }
    : { status: 404, body: { error: `unknown path ${request.path}` } };
}

/**
 * Reports the agent's mistakes in the tool's result, and the caller's as error statuses. With `claim`, calls no tool
 * and returns the distance of the agent's process from the caller.
 */
async function answerTool(tool: string, request: ControlRequest, handlers: ControlHandlers): Promise<ControlResponse> {
  if (!isToolName(tool)) return { status: 404, body: { error: `unknown tool ${tool}` } };
  const { query, ticketOf } = request;
  const input = parse(request.body);
  const ids = (query.get('ids') ?? '').split(',').filter(Boolean).slice(0, MAX_IDS);
  const client = query.get('client');
  const owner = await handlers.toolOwner({ tool, input, pids: pidsIn(query), client, ids, ticketOf });
  if ('refusal' in owner) return { status: 404, body: { error: owner.refusal, at: owner.at } };
  if (query.has('claim')) return { status: 200, body: { at: owner.at } };
  return { status: 200, body: await callTool(tool, input, owner.tools) };
}

async function answerWait({ query, signal }: ControlRequest, handlers: ControlHandlers): Promise<ControlResponse> {
  const waitId = query.get('id') ?? '';
  const withinMs = withinIn(query);
  if (waitId === '' || withinMs === null) return { status: 400, body: { error: 'id and within are missing' } };
  const answer = handlers.wait?.({ pids: pidsIn(query), waitId, withinMs, signal }) ?? null;
  return answer === null ? NOT_FOLLOWED_ANSWER : { status: 200, body: await answer };
}

function pidsIn(query: URLSearchParams): number[] {
  const pids = (query.get('pid') ?? '').split(',').map(Number);
  return pids.filter((pid) => Number.isSafeInteger(pid) && pid > 1).slice(0, MAX_PIDS);
}

/** @returns null without a wait */
function withinIn(query: URLSearchParams): number | null {
  const seconds = Number(query.get('within') ?? 0);
  return seconds > 0 ? Math.min(seconds * 1_000, MAX_WAIT_MS) : null;
}

/** @returns null if the hook could not read the clock */
function atIn(query: URLSearchParams): number | null {
  const at = Number(query.get('at'));
  return Number.isSafeInteger(at) && at > 1_000_000_000_000 ? at : null;
}

function done(call: () => void): ControlResponse {
  call();
  return OK;
}

/** A body that is not JSON counts as empty. */
function parse(body: string): Fields {
  try {
    return fieldsOf(parseWellFormed(body));
  } catch {
    return {};
  }
}

export interface HookFailure {
  hook: string;
  error: string;
}

export function hookFailure(hook: string, error: string): HookFailure {
  const name = hook.toWellFormed().replaceAll('\0', '\uFFFD').trim();
  return {
    hook: truncateText(name, MAX_ID_LENGTH - 'hook:'.length) || 'unknown',
    error: error.trim() === '' ? '(no detail)' : error,
  };
}

/** Logs at fatal, which every level includes and which notifies people. */
export function logHookFailure(logger: Logger, { hook, error }: HookFailure, sessionId: string | null): void {
  const insight = { signal: HOOK_FATAL, outcome: 'failed', source: hook, ...(sessionId === null ? {} : { sessionId }) };
  logger.child(`hook:${hook}`).log('fatal', error, { insight });
}

interface ControlOptions {
  /** Path of the control file. */
  file: string;
  source: { control?: Partial<ControlHandlers>; sessions: readonly { sessionId: string }[] };
  logger: Logger;
  obligations: () => readonly object[];
  callers: { ownerOf: ControlHandlers['toolOwner']; sessionOf(ticket: string): string | null };
}

/**
 * Opens the control port. Required by sources with hooks; for others a failure is only logged.
 * @throws Error if a required port can't be opened
 */
export async function openControl(options: ControlOptions): Promise<ControlPort | null> {
  const { file, source, logger, obligations, callers } = options;
  const log = logger.child('control-port');
  const opening = ControlPort.open({
    file,
    handlers: {
      hookFatal: (failure) => logHookFailure(logger, failure, source.sessions[0]?.sessionId ?? null),
      ...source.control,
      obligations,
      toolOwner: (caller) => callers.ownerOf(caller),
      sessionOf: (ticket) => callers.sessionOf(ticket),
      logLevel: logger.level,
    },
    onError: (message) => log.warn(message),
  });
  const opened = await opening.catch((error) => {
    if (source.control !== undefined) throw error;
    const why = error instanceof Error ? error.message : error;
    logger.child('host').warn(`could not open the control port, so the agent has no Interlude tools: ${why}`);
    return null;
  });
  logger.redactor.addSecret(opened?.secret);
  return opened;
}
