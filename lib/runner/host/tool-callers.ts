import { createHash, randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { type OpenCall, OpenSession, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { AGENT_TOOLS, type CallTool, callTool, refused, type SessionTools, type ToolName } from '../mcp/agent-tools';
import { NOT_FOLLOWED, type ToolCaller, type ToolOwner } from './control-port';
import { findListener } from './process-lookup';
import type { SessionFacts } from './source';

export interface CallerRule {
  by: 'ticket' | 'process' | 'call';
  /** Address of an external server: an http URL or a socket path. */
  listensAt?: string;
  /**
   * Client name of the agent's MCP connection, possibly depending on the provider. Any other client is an agent that
   * this agent started.
   */
  client?: RegExp | ((provider: string) => RegExp);
}

interface ToolCallersOptions {
  rule: CallerRule | undefined;
  sessions: () => readonly SessionFacts[];
  calls: RunningCalls;
  openWork: (sessionId: string) => OpenWork;
  caughtUp: (sessionId: string) => Promise<void>;
  toolsOf: (sessionId: string) => SessionTools;
}

const UNSEEN = 'no session of this runner is making this call';
const SEVERAL = 'two agents are making the same call; call it again';
const SUBAGENT =
  'these tools are for the main agent of the session, not for subagents; give your result to the agent that started you';
const NO_TICKET = 'this session has Interlude’s tools from another MCP server; call them there';

/** Events may lag behind their call by this much. */
const SEEN_WITHIN_MS = 3_000;
/** Events may lag by this much if the session is already known. */
const LOOKED_FOR_MS = 500;
/** Wait for a simultaneous call of another session. */
const SETTLED_MS = 150;
/** Generic tools through which Qwen Code and others call a tool unknown to the model. */
const WRAPPER = /tool_?call|call_?tool|mcp/i;

type Match = { sessionId: string; call: OpenCall };

/**
 * Identifies the session behind a call of Interlude's tools. The evidence is the ticket its MCP server was started
 * with, the processes above that server, and the call itself in the session's events. Unproven calls are refused.
 *
 * | agents of the runner | proof |
 * |---|---|
 * | get their MCP server from it (ACP) | the ticket |
 * | have their own process or server | it is an ancestor of the MCP server |
 * | share a server that may serve others too | it is an ancestor, and exactly one session is making this call |
 *
 * Ordering: a call may arrive before its events, so the lookup waits for them.
 */
export class ToolCallers {
  readonly #options: ToolCallersOptions;
  readonly #tickets = new Map<string, string>();
  readonly #sessionsByTicket = new Map<string, string>();

  constructor(options: ToolCallersOptions) {
    this.#options = options;
  }

  /** Grants access to the tools of this session for the life of this process. */
  ticketOf(sessionId: string): string {
    const ticket = this.#tickets.get(sessionId) ?? randomBytes(32).toString('base64url');
    this.#tickets.set(sessionId, ticket);
    this.#sessionsByTicket.set(digest(ticket), sessionId);
    return ticket;
  }

  sessionOf(ticket: string): string | null {
    return this.#sessionsByTicket.get(digest(ticket)) ?? null;
  }

  callerIn(sessionId: string): CallTool {
    return async (tool, input, made) => {
      const owner = await this.ownerOf({ tool, input, ...made, pids: [], ticketOf: sessionId });
      return 'refusal' in owner ? refused(`Interlude refused: ${owner.refusal}`) : callTool(tool, input, owner.tools);
    };
  }

  async ownerOf(caller: ToolCaller): Promise<ToolOwner> {
    const { by } = this.#options.rule ?? { by: 'process' as const };
    if (caller.ticketOf !== null) return await this.#forKnownSession(caller.ticketOf, 0, caller, by);
    const found = await this.#processAmong(caller.pids);
    if (found === null) return { at: null, refusal: NOT_FOLLOWED };
    const { at, sessionId } = found;
    if (by === 'ticket') return { at, refusal: NO_TICKET };
    if (caller.client !== null && !this.#isClient(caller.client, sessionId)) {
      return { at, refusal: `${caller.client} is not the agent of this runner` };
    }
    if (by === 'process') return await this.#forKnownSession(sessionId, at, caller, by);
    return await this.#forAnySession(caller, at);
  }

  #isClient(name: string, sessionId: string): boolean {
    const { rule, sessions } = this.#options;
    const session = sessions().find((one) => one.sessionId === sessionId);
    const client = typeof rule?.client === 'function' ? rule.client(session?.provider ?? '') : rule?.client;
    return client?.test(name) !== false;
  }

  /** The nearest ancestor that is an agent of this runner. If it ran several sessions, the latest one. */
  async #processAmong(pids: readonly number[]): Promise<{ at: number; sessionId: string } | null> {
    const { rule, sessions } = this.#options;
    const all = sessions();
    for (const [index, pid] of pids.entries()) {
      const session = all.findLast(({ process }) => process?.pid === pid);
      if (session !== undefined) return { at: index, sessionId: session.sessionId };
    }
    const last = all.at(-1);
    const at = rule?.listensAt === undefined || last === undefined ? null : await findListener(pids, rule.listensAt);
    return at === null || last === undefined ? null : { at, sessionId: last.sessionId };
  }

  /**
   * Checks a call in a known session: distinguishes its own agent from subagents and from agents that commands started.
   */
  async #forKnownSession(sessionId: string, at: number, caller: ToolCaller, by: CallerRule['by']): Promise<ToolOwner> {
    const { calls, toolsOf, openWork, caughtUp } = this.#options;
    await caughtUp(sessionId);
    const isQuiet = calls.in(sessionId).length === 0 && openWork(sessionId).tasks.length === 0;
    if (isQuiet) return { at, tools: toolsOf(sessionId) };
    const matches = await this.#settledMatches(caller, () => [sessionId], false, LOOKED_FOR_MS);
    if (matches.length > 0) {
      const refusal = refusalOf(matches);
      return refusal === null ? { at, tools: toolsOf(sessionId) } : { at, refusal };
    }
    // While the agent is busy with another call, the caller is a subagent that ACP does not show, or an agent that a
    // command started. In-process calls arrive after their events, unless the agent shows none.
    const isBusy = calls.in(sessionId).some(({ by, name }) => by === null && !WRAPPER.test(name));
    const isWithin = caller.ticketOf !== null && by !== 'ticket';
    return isBusy && !isWithin ? { at, refusal: UNSEEN } : { at, tools: toolsOf(sessionId) };
  }

  /** Finds, among many sessions, the one that is making this call. */
  async #forAnySession(caller: ToolCaller, at: number): Promise<ToolOwner> {
    const { sessions, toolsOf } = this.#options;
    const ids = () => sessions().map(({ sessionId }) => sessionId);
    const matches = await this.#settledMatches(caller, ids, true, SEEN_WITHIN_MS);
    const [first] = matches;
    if (first === undefined) return { at, refusal: UNSEEN };
    const refusal = refusalOf(matches);
    return refusal === null ? { at, tools: toolsOf(first.sessionId) } : { at, refusal };
  }

  /** Running calls that match, after waiting for simultaneous ones. */
  async #settledMatches(
    caller: ToolCaller,
    sessionIds: () => readonly string[],
    isExact: boolean,
    withinMs: number,
  ): Promise<Match[]> {
    const { calls } = this.#options;
    const find = () => {
      const matches = this.#matches(caller, sessionIds(), isExact);
      return matches.length === 0 ? null : matches;
    };
    const matches = await calls.until(find, withinMs);
    if (matches === null || matches.some(({ call }) => caller.ids.includes(call.id))) return matches ?? [];
    await calls.until(() => null, SETTLED_MS);
    return find() ?? [];
  }

  /**
   * Running calls that match by id, else by name and arguments.
   * @param isExact true to require equal arguments, which some ACP agents do not show
   */
  #matches(caller: ToolCaller, sessionIds: readonly string[], isExact: boolean): Match[] {
    const running = sessionIds.flatMap((sessionId) =>
      this.#options.calls.in(sessionId).map((call) => ({ sessionId, call })),
    );
    const byId = running.filter(({ call }) => caller.ids.includes(call.id));
    if (byId.length === 1) return byId;
    const byName = running.filter(({ call }) => matchesName(call.name, caller.tool));
    const sameInput = byName.filter(({ call }) => isSameInput(caller, call));
    return isExact || sameInput.length > 0 ? sameInput : byName;
  }
}

/** @returns the refusal, unless these calls prove a single main agent */
function refusalOf(matches: readonly Match[]): string | null {
  const isSubagents = matches.map(({ call }) => call.by !== null);
  if (new Set(matches.map(({ sessionId }) => sessionId)).size > 1 || new Set(isSubagents).size > 1) return SEVERAL;
  return isSubagents[0] === true ? SUBAGENT : null;
}

/** True if an agent shows this tool: as server and name in some form, or by its title. */
function matchesName(shown: string, tool: ToolName): boolean {
  const letters = (text: string) => text.toLowerCase().replaceAll(/[^a-z]/g, '');
  const [displayed, name, title] = [shown, tool, AGENT_TOOLS[tool].title].map(letters) as [string, string, string];
  return (
    displayed.includes(title) || displayed === name || (displayed.includes('interlude') && displayed.includes(name))
  );
}

/** Compares parsed arguments, because the MCP server already applied the schema. */
function isSameInput({ tool, input }: ToolCaller, call: OpenCall): boolean {
  const { input: schema } = AGENT_TOOLS[tool];
  const parsed = schema.safeParse(jsonOf(call.args));
  const received = schema.safeParse(input ?? {});
  if (!parsed.success || !received.success) return false;
  return isDeepStrictEqual(parsed.data, received.data);
}

function jsonOf(args: string | null): unknown {
  try {
    return args?.trim() === '' ? {} : JSON.parse(args ?? 'null');
  } catch {
    return null;
  }
}

function digest(ticket: string): string {
  return createHash('sha256').update(ticket).digest('base64url');
}

/**
 * Running tool calls of each session. They identify the caller where one process serves many sessions.
 *
 * Failure: kept in memory only. After a restart in the middle of a call, the call is refused.
 */
export class RunningCalls {
  readonly #bySession = new Map<string, OpenSession>();
  readonly #waiting = new Set<() => void>();

  in(sessionId: string): OpenCall[] {
    return this.#bySession.get(sessionId)?.calls ?? [];
  }

  record(sessionId: string, events: readonly TimedEvent[]): void {
    const session = this.#bySession.get(sessionId) ?? new OpenSession();
    for (const { event } of events) session.take(event);
    if (session.calls.length > 0) this.#bySession.set(sessionId, session);
    else this.#bySession.delete(sessionId);
    for (const check of [...this.#waiting]) check();
  }

  /** Calls `find` now and after every event, until it returns a value or `withinMs` has passed. */
  async until<T>(find: () => T | null, withinMs: number): Promise<T | null> {
    const first = find();
    if (first !== null) return first;
    return await new Promise((resolve) => {
      const check = () => {
        const found = find();
        if (found !== null) end(found);
      };
      const end = (found: T | null) => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        resolve(found);
      };
      const timer = setTimeout(() => end(null), withinMs);
      this.#waiting.add(check);
    });
  }
}
