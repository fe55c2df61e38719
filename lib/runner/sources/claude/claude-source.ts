import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { claudeVersion } from '../../adapters/claude/claude-adapter';
import type { WireEnd } from '../../adapters/wire';
import { AgentProcess, agentEnvironment, exitText } from '../../host/agent-process';
import { AgentSupervisor, type SupervisedExit } from '../../host/agent-supervisor';
import type { AttachmentFile } from '../../host/attachment-store';
import { type InFlightMessage, inFlightMessage } from '../../host/message-delivery';
import type { AnswerCommand } from '../../host/pending-requests';
import { MARK, survivingProcesses, survivorsNotice, terminateOrphan } from '../../host/process-lookup';
import type { CommandOutcome } from '../../host/seen-commands';
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
import { answerOf, PermissionRequests, resultOf } from './permission-requests';

export interface ClaudeSourceOptions {
  sdk: ClaudeSdk;
  /** True if the CLI that the SDK would start is bundled with it. Any other CLI is refused. */
  owns?: (program: string) => boolean;
  /** True if the agent runs in this process. */
  isInProcess?: boolean;
  context: SourceContext;
  memory: ClaudeSession;
  inFlight: InFlightMessage[];
  /** Environment of the CLI, before additions. */
  env: Record<string, string | undefined>;
  /** Control file for the user's hooks; without the file they find no companion. */
  controlFile?: string;
  model?: string | undefined;
  permissionMode?: PermissionMode | undefined;
  /** Creates the MCP server with Interlude's tools; without it the agent has none. */
  toolServer?: (call: CallTool) => Promise<unknown>;
  /** Added to the system prompt, so it survives a compaction. */
  workspaceNote?: string | null;
  answerWithinMs: number;
  /** Records the traffic with the Agent SDK. @see lib/runner/adapters/claude/recording.ts */
  record?: ((fields: { src: string; msg: unknown }) => void) | undefined;
  /** Reason why the session can't be ended from the dashboard; absent if it can. */
  endRefusal?: string;
  now?: () => number;
}

/** Variables that make the CLI believe it runs inside itself. */
const EXCLUDED_ENV = /^(CLAUDECODE|CLAUDE_CODE_ENTRYPOINT|CLAUDE_CODE_SSE_PORT)$/;
/** Time after which a CLI that outlives `close` is killed. */
const CLOSE_WITHIN_MS = 5_000;

/**
 * Runs Claude Code through its Agent SDK.
 *
 * Ordering: one reader for the life of the runner. Input continues across processes.
 * Failure: a CLI that dies is restarted and resumes the conversation; messages missing from its record are delivered
 * again. A CLI that keeps dying is given up, with a note in the session.
 */
export class ClaudeSource implements Source {
  readonly #options: ClaudeSourceOptions;
  readonly #context: SourceContext;
  readonly #now: () => number;
  readonly #conversation: Conversation;
  readonly #input: InputQueue;
  readonly #requests: PermissionRequests;
  readonly #supervisor: AgentSupervisor;
  readonly #started = new Set<string>();
  readonly #reportedPids = new Set<number>();
  readonly unknownSessionRefusal: string;
  readonly refusals: NonNullable<Source['refusals']>;
  readonly end?: Source['end'];
  #cli: AgentProcess | null = null;
  #query: ClaudeQuery | null = null;
  #provider: string | null = null;
  #isRestart = false;

  constructor(options: ClaudeSourceOptions) {
    this.#options = options;
    this.#context = options.context;
    const { memory, endRefusal } = options;
    const { sessionId } = memory;
    this.refusals = {
      ...(endRefusal === undefined ? {} : { 'session.end': endRefusal }),
      'task.wake': 'Claude Code wakes by itself when a task ends',
      'wake-rule.set': 'Claude Code wakes by itself when a task ends',
    };
    if (endRefusal === undefined) this.end = endSessionHandler(options.context);
    this.unknownSessionRefusal = `the agent is running session ${sessionId}; resume this one with --session`;
    this.#requests = new PermissionRequests(sessionId);
    this.#now = options.now ?? Date.now;
    this.#conversation = new Conversation(options.context, options.memory, options.inFlight, this.#now);
    this.#supervisor = new AgentSupervisor({
      name: 'Claude Code',
      context: options.context,
      run: () => this.#runOnce(),
      exited: (end) => this.#exited(end),
      isIdle: () => this.#isIdle(),
      stop: () => this.#query?.close(),
      kill: () => this.#cli?.child.kill('SIGKILL'),
      killAfterMs: CLOSE_WITHIN_MS,
      now: this.#now,
    });
    this.#input = new InputQueue(
      (message) => {
        this.#record('in', message);
        this.#conversation.delivering(message.uuid);
      },
      (message) => {
        const { files } = this.#conversation.inFlight.all.find(({ messageId }) => messageId === message.uuid) ?? {};
        return files === undefined ? message : withAttachments(message, files);
      },
    );
  }

  get sessions(): SessionFacts[] {
    const [{ process }, provider] = [this.#supervisor, this.#provider];
    const { inFlight, memory } = this.#conversation;
    const { sessionId, cwd } = memory;
    return [
      {
        sessionId,
        cwd,
        process,
        provider,
        pendingMessages: inFlight.all.length,
        attachments: this.#options.isInProcess ? [] : ATTACHMENT_KINDS,
      },
    ];
  }

  async start(): Promise<void> {
    const { memory } = this.#options;
    if (memory.running) {
      if (memory.pid !== null) await terminateOrphan(memory.pid, memory.sessionId);
      this.#conversation.closePast();
      this.#conversation.notice('The runner was restarted; the session continues.');
      await this.#reportSurvivors();
    }
    const { workspaceNote: note = null } = this.#options;
    if (note !== null) this.#context.log('info', `workspace note for the agent: ${note}`);
    this.#conversation.remember({ running: true });
    await this.#conversation.inFlight.findFiles();
    await this.#redeliver();
    this.#supervisor.start();
  }

  async close(deadlineMs: number, reason: string): Promise<void> {
    await this.#supervisor.close(deadlineMs, reason);
    this.#input.close(reason);
    this.#conversation.remember({ running: false });
  }

  async deliver(
    { body }: CommandOf<'message'>,
    again: boolean,
    files?: readonly AttachmentFile[],
  ): Promise<CommandOutcome> {
    const { messageId } = body;
    const text = messageText(body);
    const isKnown = this.#conversation.inFlight.has(messageId);
    if (isKnown || (again && (await this.#receivedIds([messageId])).has(messageId))) return { state: 'delivered' };
    // The command is stored until its delivery is reported, so it is redelivered after a kill before this point.
    const stored = this.#conversation.inFlight.put(inFlightMessage(messageId, text, files));
    await this.#input.push(userMessage({ messageId, text }));
    await stored;
    return { state: 'delivered' };
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const { open, inFlight } = this.#conversation;
    const running = open.turn?.runId ?? null;
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    if (this.#query === null) return failed('the agent is restarting, so nothing is running');
    const receipt = await this.#query.interrupt();
    const waiting = receipt?.still_queued?.length ?? 0;
    const tasks = open.tasks.map(({ description }) => description);
    this.#conversation.notice(interruptNotice(open.turn !== null, tasks, waiting));
    return {
      state: 'done',
      result: { stillQueued: receipt?.still_queued ?? [], pendingMessages: inFlight.all.length },
    };
  }

  async stop({ body }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    const { taskId, runId } = body;
    const task = this.#conversation.open.tasks.find(
      ({ id, runId: run }) => id === taskId && (runId === undefined || run === null || run === runId),
    );
    if (task === undefined) return failed('this task is no longer running');
    if (this.#query === null) return failed('the agent is restarting; try again once it runs');
    await this.#query.stopTask(taskId);
    return { state: 'done' };
  }

  async answer(command: AnswerCommand): Promise<CommandOutcome> {
    return outcomeOf(await this.#requests.answer(command));
  }

  async #exited(end: WireEnd): Promise<void> {
    this.#conversation.processEnded(end);
    if (end.isAsked === true) return;
    await this.#reportSurvivors();
    if (end.goesOn !== undefined) return;
    this.#input.close(end.reason);
    this.#conversation.remember({ running: false });
  }

  async #runOnce(): Promise<SupervisedExit> {
    if (this.#isRestart) await this.#redeliver();
    this.#isRestart = true;
    const inputEnd = new AbortController();
    const ending = this.#supervisor.signal;
    const signal = AbortSignal.any([inputEnd.signal, ending]);
    let failure: unknown = null;
    try {
      const { sdk } = this.#options;
      const query = sdk.query({
        prompt: this.#input.messages(signal),
        options: await this.#queryOptions(),
      });
      this.#query = query;
      if (this.#options.isInProcess) this.#supervisor.process = { state: 'running', pid: process.pid, exitCode: null };
      if (ending.aborted) query.close();
      for await (const message of query) this.#received(message);
    } catch (error) {
      failure = error;
    } finally {
      this.#query = null;
      inputEnd.abort();
    }
    const exit = (await this.#cli?.exited) ?? { exitCode: null, signal: null, lastOutput: null };
    this.#cli = null;
    if (failure !== null) {
      const message = failure instanceof Error ? failure.message : String(failure);
      this.#context.log('warn', `the Agent SDK's stream ended: ${message}`);
      exit.lastOutput ??= exit.signal === null ? message : null;
    }
    this.#requests.cancelAll();
    const reason = exitText(exit);
    this.#record(ending.aborted ? 'sdk.end' : 'sdk.error', reason);
    return { reason, exitCode: exit.exitCode, signal: exit.signal };
  }

  async #queryOptions() {
    const { env, controlFile = '/dev/null', model, permissionMode, workspaceNote = null } = this.#options;
    const { cwd, conversationId, sessionId } = this.#conversation.memory;
    const file = await findConversation(env, conversationId);
    const hasStarted = file !== null && (await readConversation(file, [])).hasMessages;
    const kept = Object.entries(agentEnvironment(env)).filter(([name]) => !EXCLUDED_ENV.test(name));
    return {
      cwd,
      env: {
        ...Object.fromEntries(kept),
        CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
        // Otherwise hooks installed for terminals would report this session a second time.
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
      ...(hasStarted ? { resume: conversationId } : { sessionId: conversationId }),
      // With every tool allowed, the SDK warns about an unused callback.
      ...(permissionMode === 'bypassPermissions' ? {} : { canUseTool: this.#canUseTool }),
      spawnClaudeCodeProcess: (request: ConstructorParameters<typeof AgentProcess>[0]) => {
        if (this.#options.owns?.(request.command) === false) {
          throw new Error(
            `the Agent SDK has no Claude Code program; reinstall it (${request.command} is not used instead)`,
          );
        }
        const cli = new AgentProcess(request, (text) => this.#context.log('debug', `claude: ${text.trim()}`));
        this.#cli = cli;
        this.#conversation.remember({ pid: cli.pid });
        this.#supervisor.process = { state: 'running', pid: cli.pid, exitCode: null };
        return cli.child;
      },
    };
  }

  /** The tools need no permission, because they talk only to Interlude. */
  async #toolOptions() {
    const { toolServer } = this.#options;
    if (toolServer === undefined) return {};
    const instance = await toolServer(this.#context.callTool(this.#conversation.memory.sessionId));
    return {
      mcpServers: { [MCP_SERVER_NAME]: { type: 'sdk' as const, name: MCP_SERVER_NAME, instance } },
      allowedTools: TOOL_NAMES.map((name) => `mcp__${MCP_SERVER_NAME}__${name}`),
    };
  }

  #received(message: unknown): void {
    const { type, subtype, command_uuid: uuid, state, session_id: id, ...fields } = message as Record<string, unknown>;
    if (type === 'system' && subtype === 'init') {
      // `/clear` changes the conversation id.
      if (typeof id === 'string' && id !== this.#conversation.memory.conversationId) {
        this.#conversation.remember({ conversationId: id });
      }
      this.#provider = claudeVersion(fields.claude_code_version) ?? this.#provider;
      this.#context.changed();
    }
    this.#record('sdk', message);
    this.#conversation.received(message);
    if (type === 'command_lifecycle' && typeof uuid === 'string') this.#trackMessage(uuid, state);
    this.#supervisor.checkIdle();
  }

  /** Tracks a message through the queue of the CLI. Once started, a turn answers it, however that turn ends. */
  #trackMessage(messageId: string, state: unknown): void {
    this.#input.confirmed(messageId);
    if (!this.#conversation.inFlight.has(messageId)) return;
    if (state === 'started') this.#started.add(messageId);
    if (state !== 'completed' && state !== 'cancelled' && state !== 'discarded' && state !== 'refused') return;
    this.#conversation.inFlight.remove([messageId]);
    if (!this.#started.delete(messageId) && state !== 'completed') {
      this.#context.report(messageId, { state: 'failed', reason: `Claude Code did not process the message: ${state}` });
    }
  }

  readonly #canUseTool = async (
    tool: string,
    input: Record<string, unknown>,
    context: PermissionContext,
  ): Promise<PermissionResult> => {
    const requestId = context.toolUseID ?? context.requestId;
    if (requestId === undefined)
      return { behavior: 'deny', message: "The request has no id, so it can't be answered." };
    const { answerWithinMs } = this.#options;
    const { signal: _, suggestions: __, ...details } = context;
    // A reused id opens another request, so the earlier one is withdrawn first.
    this.#requests.withdraw(requestId);
    const opened = { ...details, tool, input, expiresAt: this.#now() + answerWithinMs };
    this.#record('canUseTool', opened);
    this.#conversation.requestOpened(opened);
    const request = { tool, input, context };
    const decision = await this.#requests.wait(requestId, request, answerWithinMs, (settled) => {
      this.#record('canUseTool.result', { toolUseID: requestId, ...answerOf(settled) });
      this.#conversation.answered(requestId, answerOf(settled));
    });
    return resultOf(decision, request);
  };

  /** Redelivers messages that a dead process had and that its record lacks. */
  async #redeliver(): Promise<void> {
    const { inFlight } = this.#conversation;
    if (inFlight.all.length === 0) return;
    const received = await this.#receivedIds(inFlight.all.map(({ messageId }) => messageId));
    inFlight.remove([...received]);
    const queued = new Set(this.#input.waiting);
    this.#input.requeue(inFlight.all.filter(({ messageId }) => !queued.has(messageId)).map(userMessage));
  }

  async #receivedIds(messageIds: string[]): Promise<Set<string>> {
    const file = await findConversation(this.#options.env, this.#conversation.memory.conversationId);
    return file === null ? new Set() : (await readConversation(file, messageIds)).received;
  }

  async #reportSurvivors(): Promise<void> {
    const survivors = await survivingProcesses(this.#options.memory.sessionId, this.#reportedPids);
    if (survivors.length === 0) return;
    for (const { pid } of survivors) this.#reportedPids.add(pid);
    this.#conversation.notice(survivorsNotice(survivors), 'warning');
  }

  #record(src: string, msg: unknown): void {
    this.#options.record?.({ src, msg });
  }

  #isIdle(): boolean {
    const { open, inFlight } = this.#conversation;
    return open.turn === null && open.tasks.length === 0 && inFlight.all.length === 0;
  }
}
