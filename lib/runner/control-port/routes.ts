import { type Fields, fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import { parseWellFormed } from '@interlude/protocol/json';
import { LOG_LEVELS } from '@interlude/protocol/record-vocabulary';
import { type LevelSwitch, parseLevel } from '../logger/level-switch';
import { callTool, isToolName, type SessionTools, type ToolName } from '../mcp/agent-tools';
import { type HookFailure, hookFailure } from './hook-failure';

/**
 * The control port's routes, without HTTP. A hook forwards its stdin unchanged, so it needs no JSON of its own, and
 * prints what the port answers. A handler is missing if the agent tells all of this itself; the user's own hooks may
 * still call, and that is no error.
 */
export interface ControlHandlers {
  /** @returns what the hook prints; empty for nothing */
  hook?(call: HookCall): string | Promise<string>;
  /** `idle` from the EXIT trap of the stop hook, `busy` from hooks that start a turn. */
  status?(state: string, about: Fields, at: number | null): void;
  obligations(): readonly object[];
  sessionTurn?(about: Fields): void;
  userPrompt?(about: Fields): void;
  sessionEnd?(about: Fields): void;
  /** A hook died; `error` is `exit N: <step>`. */
  hookFatal(failure: HookFailure, about: Fields): void;
  logLevel: LevelSwitch;
  /** Finds whose agent calls a tool, or why that is not known. */
  toolOwner(caller: ToolCaller): Promise<ToolOwner>;
  /** @returns the session whose tools this ticket opens; null if none's */
  sessionOf?(ticket: string): string | null;
  /** @returns null if none of the caller's processes is an agent of this runner */
  wait?(call: WaitCall): Promise<WaitAnswer> | null;
  /** The message that a wait was handed is before its agent. @returns whether it was handed one */
  waitTaken?(claim: string): Promise<boolean>;
}

/** A call of one of Interlude's tools, with all that may prove whose it is. */
export interface ToolCaller {
  tool: ToolName;
  input: unknown;
  /** The processes above the MCP server, the nearest first. */
  pids: readonly number[];
  /** What the MCP client calls itself; null if that is not known. */
  client: string | null;
  /** Words of the request's `_meta` that may be ids of the call. */
  ids: readonly string[];
  /** The session whose ticket came with the call. */
  ticketOf: string | null;
}

/** `at`: the place in `pids` of the agent's process, null if it is not among them. */
export type ToolOwner = { at: number; tools: SessionTools } | { at: number | null; refusal: string };

/** An agent listens for a message while it is idle. */
export interface WaitCall {
  /** The caller's processes, the nearest first. */
  pids: readonly number[];
  /** Names the wait over all its calls. */
  waitId: string;
  withinMs: number;
  /** Fires when the caller has gone before it was answered. */
  signal: AbortSignal;
}

export type WaitAnswer =
  /** To be shown to the agent, and then reported as taken. */
  | { kind: 'message'; claim: string; text: string }
  /** None so far. */
  | { kind: 'again' }
  /** None will come this way. */
  | { kind: 'over'; reason: string };

export interface HookCall {
  /** `hook_event_name` as it was installed. */
  event: string;
  /** The hook's stdin. */
  input: Fields;
  /** The agent's process, if the hook knew it. */
  pid: number | null;
  /** When the hook began, if it said so. Epoch milliseconds. */
  at: number | null;
  /** How its agent was started, if it said so: `cli` by a person in a terminal. */
  from?: string | null;
  /** How long it waits for the answer; null for one that is to go on at once. */
  withinMs: number | null;
  /** Fires when the hook has gone before it was answered. */
  signal: AbortSignal;
}

export interface ControlRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  body: string;
  /** The session whose ticket opened the port: for its tools, and nothing else. Null with the port's own secret. */
  ticketOf: string | null;
  /** Fires when the caller has gone before it was answered. */
  signal: AbortSignal;
}

/** `body` as text is printed by a hook as it is, an object is sent as JSON. */
export interface ControlAnswer {
  status: number;
  body: string | object;
}

const OK: ControlAnswer = { status: 200, body: { ok: true } };
const MOST_PIDS = 16;
const LONGEST_WAIT_MS = 24 * 60 * 60_000;
const MOST_IDS = 16;
export const NOT_FOLLOWED = 'this agent has no session that is followed here';
const NOBODY: ControlAnswer = { status: 404, body: { error: NOT_FOLLOWED } };
const TICKETS_PLACE: ControlAnswer = { status: 403, body: { error: 'this opens the tools of a session only' } };
const BAD_LEVEL = { error: `level must be one of: ${LOG_LEVELS.join(', ')}` };

type Route = (request: ControlRequest, about: Fields, handlers: ControlHandlers) => ControlAnswer;

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
  ['POST /session-turn', (_request, about, handlers) => told(() => handlers.sessionTurn?.(about))],
  ['POST /user-prompt', (_request, about, handlers) => told(() => handlers.userPrompt?.(about))],
  ['POST /session-end', (_request, about, handlers) => told(() => handlers.sessionEnd?.(about))],
  [
    'GET /log-level',
    (_request, _about, { logLevel }) => ({ status: 200, body: { level: logLevel.get(), levels: LOG_LEVELS } }),
  ],
  [
    'POST /log-level',
    (_request, about, { logLevel }) => {
      const level = parseLevel(about.level);
      const ttl = numberOf(about.ttlSeconds);
      // an explicit null is the default
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
      return told(() => handlers.hookFatal(hookFailure(hook, error), about));
    },
  ],
]);

/** The handler is called before it returns: what is sent first is heard first. */
export async function answerTo(request: ControlRequest, handlers: ControlHandlers): Promise<ControlAnswer> {
  const about = parse(request.body);
  const tool = /^\/tools\/([a-z_]{1,64})$/.exec(request.path)?.[1];
  if (tool !== undefined && request.method === 'POST') return await answerTool(tool, request, handlers);
  if (request.ticketOf !== null) return TICKETS_PLACE;
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
    const ok = (await handlers.waitTaken?.(request.query.get('claim') ?? '')) ?? false;
    return ok ? OK : { status: 404, body: { error: 'no such message was handed to a wait' } };
  }
  const route = ROUTES.get(`${request.method} ${request.path}`);
  if (route) return route(request, about, handlers);
  const known = [...ROUTES.keys()].some((key) => key.endsWith(` ${request.path}`));
  return known
    ? { status: 405, body: { error: `${request.path} does not take ${request.method}` } }
    : { status: 404, body: { error: `there is no ${request.path}` } };
}

/**
 * What the agent has done wrong is in the answer, for it to read; an error is what the caller has done wrong. With
 * `claim`, nothing is called: the answer says how near the agent's process is to the caller.
 */
async function answerTool(tool: string, request: ControlRequest, handlers: ControlHandlers): Promise<ControlAnswer> {
  if (!isToolName(tool)) return { status: 404, body: { error: `there is no tool ${tool}` } };
  const { query, ticketOf } = request;
  const input = parse(request.body);
  const ids = (query.get('ids') ?? '').split(',').filter(Boolean).slice(0, MOST_IDS);
  const client = query.get('client');
  const owner = await handlers.toolOwner({ tool, input, pids: pidsIn(query), client, ids, ticketOf });
  if ('refusal' in owner) return { status: 404, body: { error: owner.refusal, at: owner.at } };
  if (query.has('claim')) return { status: 200, body: { at: owner.at } };
  return { status: 200, body: await callTool(tool, input, owner.tools) };
}

async function answerWait({ query, signal }: ControlRequest, handlers: ControlHandlers): Promise<ControlAnswer> {
  const waitId = query.get('id') ?? '';
  const withinMs = withinIn(query);
  if (waitId === '' || withinMs === null) return { status: 400, body: { error: 'id and within are missing' } };
  const answer = handlers.wait?.({ pids: pidsIn(query), waitId, withinMs, signal }) ?? null;
  return answer === null ? NOBODY : { status: 200, body: await answer };
}

function pidsIn(query: URLSearchParams): number[] {
  const pids = (query.get('pid') ?? '').split(',').map(Number);
  return pids.filter((pid) => Number.isSafeInteger(pid) && pid > 1).slice(0, MOST_PIDS);
}

/** Null for who does not wait. */
function withinIn(query: URLSearchParams): number | null {
  const seconds = Number(query.get('within') ?? 0);
  return seconds > 0 ? Math.min(seconds * 1_000, LONGEST_WAIT_MS) : null;
}

/** Null if the hook could not read the clock. */
function atIn(query: URLSearchParams): number | null {
  const at = Number(query.get('at'));
  return Number.isSafeInteger(at) && at > 1_000_000_000_000 ? at : null;
}

function told(tell: () => void): ControlAnswer {
  tell();
  return OK;
}

/** A body that is not JSON counts as empty: the hook goes on either way. */
function parse(body: string): Fields {
  try {
    return fieldsOf(parseWellFormed(body));
  } catch {
    return {};
  }
}
