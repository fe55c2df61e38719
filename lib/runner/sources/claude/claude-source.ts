import { setTimeout as pause } from 'node:timers/promises';
import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { claudeVersion } from '../../adapters/claude/claude-version';
import type { CommandOutcome } from '../../commands/seen-commands';
import { DrainWait, RestartPolicy } from '../../host/agent-lifecycle';
import { MARK, survivingProcesses, survivorsNotice, terminateOrphan } from '../../host/agent-processes';
import type { AttachmentFile } from '../../host/attachment-store';
import { type InFlightMessage, inFlightMessage } from '../../host/message-delivery';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import {
  endSessionHandler,
  failed,
  interruptNotice,
  messageText,
  outcomeOf,
  staleInterrupt,
} from '../../host/source-commands';
import { type CallTool, MCP_SERVER_NAME, TOOL_NAMES } from '../../mcp/agent-tools';
import { type AgentExit, AgentProcess, agentEnvironment, exitText } from '../../wire/agent-process';
import { InputQueue, withAttachments } from './claude-input';
import {
  type ClaudeQuery,
  type ClaudeSdk,
  type PermissionContext,
  type PermissionMode,
  type PermissionResult,
  systemPrompt,
  userMessage,
} from './claude-sdk';
import type { ClaudeSession } from './conversation';
import { Conversation, findConversation, readConversation } from './conversation';
import { answerOf, type Decision, PermissionRequests, resultOf } from './permission-requests';

/**
 * A live Claude Code, run through its Agent SDK.
 *
 * Ordering: one reader for as long as the runner lives; the input of the next process goes on where that of the last
 * one ended.
 * Failure: a CLI that dies is started again and resumes the conversation; what it had been given and has no record of
 * is given to it again. One that keeps dying is given up, and that is said in the session.
 */
export interface ClaudeSourceOptions {
  sdk: ClaudeSdk;
  /** Whether a program the SDK would start as its CLI came with it: one found elsewhere is not run. */
  owns?: (program: string) => boolean;
  /** The agent is no program: it runs in this process. */
  isInProcess?: boolean;
  context: SourceContext;
  memory: ClaudeSession;
  inHand: InFlightMessage[];
  /** The environment the CLI gets, beside what is added here. */
  env: Record<string, string | undefined>;
  /** Where hooks of the user's settings find this runner; without it they are to find no companion at all. */
  controlFile?: string;
  model?: string | undefined;
  permissionMode?: PermissionMode | undefined;
  /** Makes the MCP server through which the agent has Interlude's tools; without it, it has none. */
  toolServer?: (call: CallTool) => Promise<unknown>;
  /** Stands in the agent’s instructions: known before the first message, also after a compaction. */
  workspaceNote?: string | null;
  /** How long a permission or a question waits for a person. */
  answerWithinMs: number;
  /** Writes down what passes between the Agent SDK and the runner. @see lib/runner/adapters/claude/recording.ts */
  record?: ((fields: { src: string; msg: unknown }) => void) | undefined;
  /** Why people can't end its session from the dashboard; without it, they can. */
  endRefusal?: string;
  now?: () => number;
}

/** What would make the CLI think that it runs inside itself. */
const WITHHELD = /^(CLAUDECODE|CLAUDE_CODE_ENTRYPOINT|CLAUDE_CODE_SSE_PORT)$/;
/** `close` gives the CLI about two seconds; what is there then is killed. */
const CLOSE_WITHIN_MS = 5_000;

export class ClaudeSource implements Source {
  readonly #options: ClaudeSourceOptions;
  readonly #context: SourceContext;
  readonly #now: () => number;
  readonly #conversation: Conversation;
  readonly #input: InputQueue;
  readonly #requests: PermissionRequests;
  readonly #restarts = new RestartPolicy();
  readonly #ending = new AbortController();
  readonly #started = new Set<string>();
  readonly #toldPids = new Set<number>();
  readonly elsewhere: string;
  readonly refusals: NonNullable<Source['refusals']>;
  readonly end?: Source['end'];
  #process: NonNullable<SessionFacts['process']> = { state: 'starting', pid: null, exitCode: null };
  #cli: AgentProcess | null = null;
  #query: ClaudeQuery | null = null;
  #life: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  #over: string | null = null;
  #provider: string | null = null;
  #endsFor = '';
  readonly #quiet = new DrainWait();

  constructor(options: ClaudeSourceOptions) {
    this.#options = options;
    this.#context = options.context;
    const { memory, endRefusal } = options;
    const { sessionId } = memory;
    this.refusals = {
      ...(endRefusal === undefined ? {} : { 'session.end': endRefusal }),
      'task.wake': 'Claude Code is told of its tasks and wakes by itself',
      'wake-rule.set': 'Claude Code is told of its tasks and wakes by itself',
    };
    if (endRefusal === undefined) this.end = endSessionHandler(options.context);
    this.elsewhere = `the agent carries session ${sessionId} now; resume this one with --session`;
    this.#requests = new PermissionRequests(sessionId);
    this.#now = options.now ?? Date.now;
    this.#conversation = new Conversation(options.context, options.memory, options.inHand, this.#now);
    this.#input = new InputQueue(
      (message) => {
        this.#record('in', message);
        this.#conversation.handed(message.uuid);
      },
      (message) => {
        const { files } = this.#conversation.inHand.find(({ messageId }) => messageId === message.uuid) ?? {};
        return files === undefined ? message : withAttachments(message, files);
      },
    );
  }

  get sessions(): SessionFacts[] {
    const [process, provider] = [this.#process, this.#provider];
    const { inHand, memory } = this.#conversation;
    const { sessionId, cwd } = memory;
    return [
      {
        sessionId,
        cwd,
        process,
        provider,
        pendingMessages: inHand.length,
        attachments: this.#options.isInProcess ? [] : ATTACHMENT_KINDS,
      },
    ];
  }

  async start(): Promise<void> {
    const { memory } = this.#options;
    if (memory.running) {
      if (memory.pid !== null) await terminateOrphan(memory.pid, memory.sessionId);
      this.#conversation.closePast();
      this.#conversation.notice('The runner was started again; the session goes on.');
      await this.#tellSurvivors();
    }
    const { workspaceNote: note = null } = this.#options;
    if (note !== null) this.#context.log('info', `the agent is told of its workspace: ${note}`);
    this.#conversation.remember({ running: true });
    await this.#conversation.findFiles();
    await this.#giveAgain();
    this.#life = this.#live();
  }

  close(deadlineMs: number, reason: string): Promise<void> {
    if (deadlineMs <= 0) this.#quiet.end();
    this.#closing ??= this.#end(deadlineMs, reason);
    return this.#closing;
  }

  async #end(deadlineMs: number, reason: string): Promise<void> {
    this.#endsFor = reason;
    if (deadlineMs > 0 && !this.#isQuiet()) await this.#quiet.within(deadlineMs);
    this.#ending.abort();
    this.#query?.close();
    const killing = setTimeout(() => this.#cli?.child.kill('SIGKILL'), CLOSE_WITHIN_MS);
    await this.#life;
    clearTimeout(killing);
    this.#input.close(reason);
    this.#conversation.remember({ running: false });
  }

  async say(
    { body }: CommandOf<'message'>,
    again: boolean,
    files?: readonly AttachmentFile[],
  ): Promise<CommandOutcome> {
    const { messageId } = body;
    const text = messageText(body);
    const isKnown = this.#conversation.inHand.some((message) => message.messageId === messageId);
    if (isKnown || (again && (await this.#taken([messageId])).has(messageId))) return { state: 'delivered' };
    // That it was begun is stored: a kill in between has it come again. So the note need not go before the message,
    // only before the word that it was delivered.
    const noted = this.#conversation.take(inFlightMessage(messageId, text, files));
    await this.#input.push(userMessage({ messageId, text }));
    await noted;
    return { state: 'delivered' };
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const { open, inHand } = this.#conversation;
    const running = open.turn?.runId ?? null;
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    if (this.#query === null) return failed('the agent is being started again: nothing runs');
    const receipt = await this.#query.interrupt();
    const waiting = receipt?.still_queued?.length ?? 0;
    const going = open.tasks.map(({ description }) => description);
    this.#conversation.notice(interruptNotice(open.turn !== null, going, waiting));
    return { state: 'done', result: { stillQueued: receipt?.still_queued ?? [], pendingMessages: inHand.length } };
  }

  async stop({ body }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    const { taskId, runId } = body;
    const task = this.#conversation.open.tasks.find(
      ({ id, runId: run }) => id === taskId && (runId === undefined || run === null || run === runId),
    );
    if (task === undefined) return failed('this task does not run any more');
    if (this.#query === null) return failed('the agent is being started again');
    await this.#query.stopTask(taskId);
    return { state: 'done' };
  }

  async answer({ type, body }: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    const decision = type === 'question.answer' ? { kind: 'question', said: body } : { kind: 'permission', said: body };
    return outcomeOf(this.#requests.decide(body.requestId, decision as Decision));
  }

  /** Process after process, until the runner ends or they keep dying. */
  async #live(): Promise<void> {
    for (;;) {
      const startedAt = this.#now();
      const exit = await this.#runOnce();
      this.#requests.cancelAll();
      const reason = exitText(exit);
      this.#record(this.#ending.signal.aborted ? 'sdk.end' : 'sdk.error', reason);
      const { exitCode, signal } = exit;
      this.#observe({ state: 'exited', pid: null, exitCode, signal });
      if (this.#ending.signal.aborted) {
        this.#conversation.processEnded({ reason: this.#endsFor, isAsked: true });
        return;
      }
      const next = this.#restarts.exited(startedAt, this.#now());
      if (next.kind === 'give-up') {
        const why = `Claude Code ended ${next.exits} times within ${next.withinMs / 1000} s, the last time it was: ${reason}`;
        this.#over = why;
        this.#conversation.processEnded({ reason: why, exitCode: exitCode ?? (signal === null ? 1 : null), signal });
        await this.#tellSurvivors();
        this.#input.close(why);
        this.#conversation.remember({ running: false });
        this.#context.gaveUp(why);
        return;
      }
      this.#observe({ state: 'restarting', pid: null, exitCode, signal });
      this.#conversation.processEnded({ reason, goesOn: `It is started again in ${next.waitMs / 1000} s.` });
      await this.#tellSurvivors();
      await pause(next.waitMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
      if (!this.#ending.signal.aborted) await this.#giveAgain();
    }
  }

  async #runOnce(): Promise<AgentExit> {
    const inputEnd = new AbortController();
    const signal = AbortSignal.any([inputEnd.signal, this.#ending.signal]);
    let failure: unknown = null;
    try {
      const { sdk } = this.#options;
      const query = sdk.query({
        prompt: this.#input.messages(signal),
        options: await this.#queryOptions(),
      });
      this.#query = query;
      if (this.#options.isInProcess) this.#observe({ state: 'running', pid: process.pid, exitCode: null });
      if (this.#ending.signal.aborted) query.close();
      for await (const message of query) this.#heard(message);
    } catch (error) {
      failure = error;
    } finally {
      this.#query = null;
      inputEnd.abort();
    }
    const exit = (await this.#cli?.exited) ?? { exitCode: null, signal: null, lastWords: null };
    this.#cli = null;
    if (failure === null) return exit;
    const message = failure instanceof Error ? failure.message : String(failure);
    this.#context.log('warn', `the Agent SDK's stream ended: ${message}`);
    return { ...exit, lastWords: exit.lastWords ?? (exit.signal === null ? message : null) };
  }

  async #queryOptions() {
    const { env, controlFile = '/dev/null', model, permissionMode, workspaceNote = null } = this.#options;
    const { cwd, conversationId, sessionId } = this.#conversation.memory;
    const file = await findConversation(env, conversationId);
    const isBegun = file !== null && (await readConversation(file, [])).begun;
    const kept = Object.entries(agentEnvironment(env)).filter(([name]) => !WITHHELD.test(name));
    return {
      cwd,
      env: {
        ...Object.fromEntries(kept),
        CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
        // Else hooks installed for terminals would have their companion tell this session a second time.
        INTERLUDE_CONTROL: controlFile,
        [MARK]: sessionId,
      },
      ...(model === undefined ? {} : { model }),
      ...(permissionMode === undefined ? {} : { permissionMode }),
      ...(permissionMode === 'bypassPermissions' ? { allowDangerouslySkipPermissions: true } : {}),
      settingSources: ['user' as const, 'project' as const, 'local' as const],
      systemPrompt: systemPrompt(workspaceNote),
      includePartialMessages: true as const,
      perTaskStopAffordance: true as const,
      ...(await this.#toolOptions()),
      ...(isBegun ? { resume: conversationId } : { sessionId: conversationId }),
      // With every tool allowed nothing is asked, and the SDK warns of a callback it will never call.
      ...(permissionMode === 'bypassPermissions' ? {} : { canUseTool: this.#mayUse }),
      spawnClaudeCodeProcess: (request: ConstructorParameters<typeof AgentProcess>[0]) => {
        if (this.#options.owns?.(request.command) === false) {
          throw new Error(`the Agent SDK did not bring its own Claude Code, and ${request.command} is not run instead`);
        }
        const cli = new AgentProcess(request, (text) => this.#context.log('debug', `claude: ${text.trim()}`));
        this.#cli = cli;
        this.#conversation.remember({ pid: cli.pid });
        this.#observe({ state: 'running', pid: cli.pid, exitCode: null });
        return cli.child;
      },
    };
  }

  /** Nobody is asked whether it may use them: they speak to Interlude only. */
  async #toolOptions() {
    const { toolServer } = this.#options;
    if (toolServer === undefined) return {};
    const instance = await toolServer(this.#context.callTool(this.#conversation.memory.sessionId));
    return {
      mcpServers: { [MCP_SERVER_NAME]: { type: 'sdk' as const, name: MCP_SERVER_NAME, instance } },
      allowedTools: TOOL_NAMES.map((name) => `mcp__${MCP_SERVER_NAME}__${name}`),
    };
  }

  #heard(message: unknown): void {
    const { type, subtype, command_uuid: uuid, state, session_id: id, ...said } = message as Record<string, unknown>;
    if (type === 'system' && subtype === 'init') {
      // `/clear` gives the conversation another name.
      if (typeof id === 'string' && id !== this.#conversation.memory.conversationId) {
        this.#conversation.remember({ conversationId: id });
      }
      this.#provider = claudeVersion(said.claude_code_version) ?? this.#provider;
      this.#context.changed();
    }
    this.#record('sdk', message);
    this.#conversation.heard(message);
    if (type === 'command_lifecycle' && typeof uuid === 'string') this.#followed(uuid, state);
    this.#checkQuiet();
  }

  /** What the CLI says of a message it was given. One that it began is answered by a turn, however that ends. */
  #followed(messageId: string, state: unknown): void {
    this.#input.confirmed(messageId);
    if (!this.#conversation.inHand.some((message) => message.messageId === messageId)) return;
    if (state === 'started') this.#started.add(messageId);
    if (state !== 'completed' && state !== 'cancelled' && state !== 'discarded' && state !== 'refused') return;
    this.#conversation.letGo([messageId]);
    if (!this.#started.delete(messageId) && state !== 'completed') {
      this.#context.report(messageId, { state: 'failed', reason: `Claude Code did not take it up: ${state}` });
    }
  }

  readonly #mayUse = async (
    tool: string,
    input: Record<string, unknown>,
    context: PermissionContext,
  ): Promise<PermissionResult> => {
    const requestId = context.toolUseID ?? context.requestId;
    if (requestId === undefined)
      return { behavior: 'deny', message: 'The request has no id, so nobody can answer it.' };
    const { answerWithinMs } = this.#options;
    const { signal: _, suggestions: __, ...details } = context;
    // Asked anew under the same id, it is another request: the first is over before the second is told of.
    this.#requests.withdraw(requestId);
    const asked = { ...details, tool, input, expiresAt: this.#now() + answerWithinMs };
    this.#record('canUseTool', asked);
    this.#conversation.asked(asked);
    const request = { tool, input, context };
    const decision = await this.#requests.wait(requestId, request, answerWithinMs, (settled) => {
      this.#record('canUseTool.result', { toolUseID: requestId, ...answerOf(settled) });
      this.#conversation.answered(requestId, answerOf(settled));
    });
    return resultOf(decision, request);
  };

  /** What was in the hands of a process that is gone, and is in no record, is handed to the next one. */
  async #giveAgain(): Promise<void> {
    const inHand = this.#conversation.inHand;
    if (inHand.length === 0) return;
    const taken = await this.#taken(inHand.map(({ messageId }) => messageId));
    this.#conversation.letGo([...taken]);
    const queued = new Set(this.#input.waiting);
    this.#input.pushAgain(this.#conversation.inHand.filter(({ messageId }) => !queued.has(messageId)).map(userMessage));
  }

  async #taken(messageIds: string[]): Promise<Set<string>> {
    const file = await findConversation(this.#options.env, this.#conversation.memory.conversationId);
    return file === null ? new Set() : (await readConversation(file, messageIds)).taken;
  }

  async #tellSurvivors(): Promise<void> {
    const survivors = await survivingProcesses(this.#options.memory.sessionId, this.#toldPids);
    if (survivors.length === 0) return;
    for (const { pid } of survivors) this.#toldPids.add(pid);
    this.#conversation.notice(survivorsNotice(survivors), 'warning');
  }

  #record(src: string, msg: unknown): void {
    this.#options.record?.({ src, msg });
  }

  #observe(process: NonNullable<SessionFacts['process']>): void {
    this.#process = process;
    this.#context.changed();
    this.#checkQuiet();
  }

  #isQuiet(): boolean {
    const { open, inHand } = this.#conversation;
    return this.#over !== null || (open.turn === null && open.tasks.length === 0 && inHand.length === 0);
  }

  #checkQuiet(): void {
    if (this.#isQuiet()) this.#quiet.end();
  }
}
