import { createHash, randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { type OpenCall, OpenSession, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { NOT_FOLLOWED, type ToolCaller, type ToolOwner } from '../control-port/routes';
import { AGENT_TOOLS, type CallTool, callTool, refused, type SessionTools, type ToolName } from '../mcp/agent-tools';
import { findListener } from './process-lookup';
import type { SessionFacts } from './source';

/**
 * Finds the session that makes a call of Interlude's tools, by evidence only: the ticket its MCP server was started
 * with, the processes above that server, and the call itself as the session's events show it. A call whose session is
 * not proven is refused in one sentence.
 *
 * | the runner's agents | proof |
 * |---|---|
 * | are given their MCP server by it (ACP) | the ticket |
 * | have a process or a server to themselves | that process is above the MCP server |
 * | share a server, which may serve others too | that server is above it, and one session is making this very call |
 *
 * Ordering: a call may arrive before its session's events show it, so the lookup waits for them.
 */
export interface CallerRule {
  by: 'ticket' | 'process' | 'call';
  /** Of a server that the runner has not started: an http address, or the path of a socket. */
  listensAt?: string;
  /**
   * What the agent's MCP client calls itself, perhaps by the provider that its session names. Another one is an agent that
   * this agent has started.
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

const UNSEEN = 'no session that is followed here is making this call';
const SEVERAL = 'two agents make this same call at this moment; call it again';
const SUBAGENT =
  'these tools are for the session’s own agent, and a subagent called; give your result to the agent that started you';
const NO_TICKET = 'this session has Interlude’s tools by another server; call them there';

/** How long events may be behind the call they show. */
const SEEN_WITHIN_MS = 3_000;
/** The same, where the session is known without them. */
const LOOKED_FOR_MS = 500;
/** How long after one call another session's may follow that was made at the same moment. */
const SETTLED_MS = 150;
/** Qwen Code's and others' way of calling a tool that is not among those of the model. */
const WRAPPER = /tool_?call|call_?tool|mcp/i;

type Match = { sessionId: string; call: OpenCall };

export class ToolCallers {
  readonly #options: ToolCallersOptions;
  readonly #tickets = new Map<string, string>();
  readonly #sessionsByTicket = new Map<string, string>();

  constructor(options: ToolCallersOptions) {
    this.#options = options;
  }

  /** Opens the tools of this session and nothing else, for as long as this process lives. */
  ticketOf(sessionId: string): string {
    const ticket = this.#tickets.get(sessionId) ?? randomBytes(32).toString('base64url');
    this.#tickets.set(sessionId, ticket);
    this.#sessionsByTicket.set(digest(ticket), sessionId);
    return ticket;
  }

  sessionOf(ticket: string): string | null {
    return this.#sessionsByTicket.get(digest(ticket)) ?? null;
  }

  /** Calls the tools of a session in this process. */
  callerIn(sessionId: string): CallTool {
    return async (tool, input, made) => {
      const owner = await this.ownerOf({ tool, input, ...made, pids: [], ticketOf: sessionId });
      return 'refusal' in owner ? refused(`Interlude refused: ${owner.refusal}`) : callTool(tool, input, owner.tools);
    };
  }

  async ownerOf(caller: ToolCaller): Promise<ToolOwner> {
    const { by } = this.#options.rule ?? { by: 'process' as const };
    if (caller.ticketOf !== null) return await this.#alone(caller.ticketOf, 0, caller, by);
    const found = await this.#processAmong(caller.pids);
    if (found === null) return { at: null, refusal: NOT_FOLLOWED };
    const { at, sessionId } = found;
    if (by === 'ticket') return { at, refusal: NO_TICKET };
    if (caller.client !== null && !this.#isClient(caller.client, sessionId)) {
      return { at, refusal: `${caller.client} is not the agent that is followed here` };
    }
    if (by === 'process') return await this.#alone(sessionId, at, caller, by);
    return await this.#among(caller, at);
  }

  #isClient(name: string, sessionId: string): boolean {
    const { rule, sessions } = this.#options;
    const session = sessions().find((one) => one.sessionId === sessionId);
    const client = typeof rule?.client === 'function' ? rule.client(session?.provider ?? '') : rule?.client;
    return client?.test(name) !== false;
  }

  /** The nearest process that is an agent of this runner. Of two sessions that it has carried, the later one's. */
  async #processAmong(pids: readonly number[]): Promise<{ at: number; sessionId: string } | null> {
    const { rule, sessions } = this.#options;
    const all = sessions();
    for (const [at, pid] of pids.entries()) {
      const session = all.findLast(({ process }) => process?.pid === pid);
      if (session !== undefined) return { at, sessionId: session.sessionId };
    }
    const last = all.at(-1);
    const at = rule?.listensAt === undefined || last === undefined ? null : await findListener(pids, rule.listensAt);
    return at === null || last === undefined ? null : { at, sessionId: last.sessionId };
  }

  /** A session that is known already: its own agent calls, a subagent, or an agent that a command has started. */
  async #alone(sessionId: string, at: number, caller: ToolCaller, by: CallerRule['by']): Promise<ToolOwner> {
    const { calls, toolsOf, openWork, caughtUp } = this.#options;
    await caughtUp(sessionId);
    const isQuiet = calls.in(sessionId).length === 0 && openWork(sessionId).tasks.length === 0;
    if (isQuiet) return { at, tools: toolsOf(sessionId) };
    const matches = await this.#settled(caller, () => [sessionId], false, LOOKED_FOR_MS);
    if (matches.length > 0) {
      const refusal = refusalOf(matches);
      return refusal === null ? { at, tools: toolsOf(sessionId) } : { at, refusal };
    }
    // While its agent waits for another call, it is a subagent that ACP does not show, or an agent that a command has
    // started. A call within this process has come after the events that show it, or its agent shows none.
    const isBusy = calls.in(sessionId).some(({ by, name }) => by === null && !WRAPPER.test(name));
    const isWithin = caller.ticketOf !== null && by !== 'ticket';
    return isBusy && !isWithin ? { at, refusal: UNSEEN } : { at, tools: toolsOf(sessionId) };
  }

  /** One of many sessions: the one that is making this very call. */
  async #among(caller: ToolCaller, at: number): Promise<ToolOwner> {
    const { sessions, toolsOf } = this.#options;
    const ids = () => sessions().map(({ sessionId }) => sessionId);
    const matches = await this.#settled(caller, ids, true, SEEN_WITHIN_MS);
    const [first] = matches;
    if (first === undefined) return { at, refusal: UNSEEN };
    const refusal = refusalOf(matches);
    return refusal === null ? { at, tools: toolsOf(first.sessionId) } : { at, refusal };
  }

  /** The running calls that may be this one, once those are there that were made at the same moment. */
  async #settled(
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
   * Running calls that may be this one: that with its id, else those that look like it.
   *
   * @param isExact also by their arguments, which some ACP agents don't show
   */
  #matches(caller: ToolCaller, sessionIds: readonly string[], isExact: boolean): Match[] {
    const running = sessionIds.flatMap((sessionId) =>
      this.#options.calls.in(sessionId).map((call) => ({ sessionId, call })),
    );
    const byId = running.filter(({ call }) => caller.ids.includes(call.id));
    if (byId.length === 1) return byId;
    const byName = running.filter(({ call }) => names(call.name, caller.tool));
    const alike = byName.filter(({ call }) => isSameInput(caller, call));
    return isExact || alike.length > 0 ? alike : byName;
  }
}

/** @returns why these do not prove that one session's own agent calls; null if they do */
function refusalOf(matches: readonly Match[]): string | null {
  const isSubagents = matches.map(({ call }) => call.by !== null);
  if (new Set(matches.map(({ sessionId }) => sessionId)).size > 1 || new Set(isSubagents).size > 1) return SEVERAL;
  return isSubagents[0] === true ? SUBAGENT : null;
}

/** Agents show a tool by its name with its server's around it, or by its title. */
function names(shown: string, tool: ToolName): boolean {
  const letters = (text: string) => text.toLowerCase().replaceAll(/[^a-z]/g, '');
  const [said, name, title] = [shown, tool, AGENT_TOOLS[tool].title].map(letters) as [string, string, string];
  return said.includes(title) || said === name || (said.includes('interlude') && said.includes(name));
}

/** As the tool reads it: the MCP server has passed on what its schema made of the arguments. */
function isSameInput({ tool, input }: ToolCaller, call: OpenCall): boolean {
  const { input: schema } = AGENT_TOOLS[tool];
  const parsed = schema.safeParse(jsonOf(call.args));
  const given = schema.safeParse(input ?? {});
  if (!parsed.success || !given.success) return false;
  return isDeepStrictEqual(parsed.data, given.data);
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
 * The tool calls under way in each session, from the events on their way out. They prove which session makes a
 * call where one process serves many sessions.
 *
 * Failure: kept in memory only. A runner that starts in the middle of a call does not know it, and the call is refused.
 */
export class RunningCalls {
  readonly #bySession = new Map<string, OpenSession>();
  readonly #waiting = new Set<() => void>();

  in(sessionId: string): OpenCall[] {
    return this.#bySession.get(sessionId)?.calls ?? [];
  }

  saw(sessionId: string, events: readonly TimedEvent[]): void {
    const session = this.#bySession.get(sessionId) ?? new OpenSession();
    for (const { event } of events) session.take(event);
    if (session.calls.length > 0) this.#bySession.set(sessionId, session);
    else this.#bySession.delete(sessionId);
    for (const look of [...this.#waiting]) look();
  }

  /** Calls `find` now and after each event, until it gives something or the time is over. */
  async until<T>(find: () => T | null, withinMs: number): Promise<T | null> {
    const first = find();
    if (first !== null) return first;
    return await new Promise((resolve) => {
      const look = () => {
        const found = find();
        if (found !== null) end(found);
      };
      const end = (found: T | null) => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => end(null), withinMs);
      this.#waiting.add(look);
    });
  }
}
