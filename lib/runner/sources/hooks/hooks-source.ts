import { existsSync } from 'node:fs';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { toolTitle } from '../../adapters/claude/requests';
import type { HookClaim } from '../../adapters/claude/stop-hooks';
import { type HookCall, type HookFailure, logHookFailure, type WaitCall } from '../../host/control-port';
import type { OpenObligation } from '../../host/obligations';
import { hasExited } from '../../host/process-lookup';
import type { CommandOutcome } from '../../host/seen-commands';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import { failed } from '../../host/source-commands';
import type { Logger } from '../../logger/logger';
import { IdleDelivery, IN_TERMINAL } from './idle-delivery';
import { MessageInbox, stopDecision } from './message-inbox';
import { parseMirrorState } from './mirror-state';
import { PermissionHooks } from './permission-hooks';
import { SessionMirror } from './session-mirror';

export interface HooksSourceOptions {
  context: SourceContext;
  /** Follows only this session. */
  sessionId?: string | undefined;
  /** Logs failures of the hooks themselves. */
  logger: Logger;
  /** True if idle agents get a hint that they can listen for messages. */
  offersToListen?: boolean;
}

const CURSOR = 'transcript:';
const POLL_MS = 200;
const ALIVE_MS = 5_000;

/**
 * Mirrors terminal sessions of Claude Code from their hooks and transcripts.
 *
 * Ordering: the events of a session follow its transcript; sessions are independent.
 * Failure: after a kill, the source continues from the stored position and includes what the agent did meanwhile.
 * Without the server, it buffers. Without the companion, agents work as if the hooks were not installed.
 */
export class HooksSource implements Source {
  readonly #options: HooksSourceOptions;
  readonly #context: SourceContext;
  readonly #inbox = new MessageInbox();
  readonly #idle: IdleDelivery;
  readonly #permissions = new PermissionHooks({
    onChange: () => this.#context.changed(),
    onAnswered: (sessionId, requestId, answer) => this.#mirrors.get(sessionId)?.requestAnswered(requestId, answer),
    onReleased: (sessionId, requestId) => this.#mirrors.get(sessionId)?.releaseToTerminal(requestId),
  });
  readonly #mirrors = new Map<string, SessionMirror>();
  /** Stored state by session, including ended ones. */
  readonly #stored: Map<string, string>;
  #timers: NodeJS.Timeout[] = [];

  readonly refusals = {
    interrupt: `${IN_TERMINAL}; press Esc there to interrupt it`,
    'session.end': `${IN_TERMINAL}; end it there (/exit)`,
    'task.wake': 'Claude Code wakes by itself when a task ends',
    'wake-rule.set': 'Claude Code wakes by itself when a task ends',
    'task.stop': `${IN_TERMINAL}; stop its tasks there (/tasks)`,
    'permission.decision': `${IN_TERMINAL}; answer its permission requests there`,
    'question.answer': `${IN_TERMINAL}; answer its questions there`,
  };

  readonly control = {
    hook: (call: HookCall) => this.#hook(call),
    status: (state: string, about: Fields, at: number | null) => this.#selfReport(state, about, at),
    sessionTurn: (about: Fields) => this.#selfReport('busy', about),
    userPrompt: (about: Fields) => this.#selfReport('busy', about),
    sessionEnd: (about: Fields) => this.#of(about)?.end('the terminal session was closed'),
    hookFatal: (failure: HookFailure, about: Fields) => this.#hookFatal(failure, about),
    wait: (call: WaitCall) => this.#idle.wait(call),
    confirmWait: (claim: string) => this.#idle.confirm(claim),
  };

  /** Resumes the sessions of the previous source and emits the events since then. */
  static async open(options: HooksSourceOptions): Promise<HooksSource> {
    const source = new HooksSource(options, await options.context.cursors(CURSOR));
    for (const [name, value] of source.#stored) {
      const sessionId = name.slice(CURSOR.length);
      const state = parseMirrorState(value);
      if (state !== null && !state.ended) {
        source.#mirror(sessionId, state.file);
        source.#idle.restore(sessionId, state.waited);
      }
      if (state === null || (state.ended && !existsSync(state.file))) await source.#forget(sessionId);
    }
    return source;
  }

  private constructor(options: HooksSourceOptions, stored: Map<string, string>) {
    this.#options = options;
    this.#context = options.context;
    this.#stored = stored;
    this.#idle = new IdleDelivery({
      ...{ inbox: this.#inbox, mirrors: this.#mirrors, offers: options.offersToListen === true },
      onChange: () => this.#context.changed(),
      log: (level, message) => this.#context.log(level, message),
    });
  }

  get sessions(): SessionFacts[] {
    return [...this.#mirrors.values()]
      .filter((mirror) => !mirror.hasEnded)
      .map(({ sessionId, process, isLeft, selfReport: state, provider }) => ({
        sessionId,
        // A process that left the session may already run another one.
        process: { state: 'running', pid: isLeft ? null : (process?.pid ?? null), exitCode: null },
        state,
        provider,
        wakeable: this.#idle.isListening(sessionId),
        attachments: [],
      }));
  }

  async start(): Promise<void> {
    this.#timers = [setInterval(() => this.#poll(), POLL_MS), setInterval(() => void this.#checkProcesses(), ALIVE_MS)];
    void this.#checkProcesses();
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#idle.close();
    this.#permissions.release(null);
    // An open hold still reaches the agent; the next source reports the delivery.
    for (const mirror of this.#mirrors.values()) {
      this.#inbox.refuse(mirror.sessionId, 'the companion was stopped', (messageId) => mirror.isInFlight(messageId));
    }
    await Promise.all([...this.#mirrors.values()].map((mirror) => mirror.step()));
  }

  /** @param again true if an earlier source may have delivered the message */
  async deliver(command: CommandOf<'message'>, again: boolean): Promise<CommandOutcome> {
    const mirror = this.#mirrors.get(command.sessionId ?? '');
    const { messageId } = command.body;
    // The latest lines may show the message.
    if (again) await mirror?.step();
    if (mirror?.wasDelivered(messageId)) return { state: 'delivered' };
    if (mirror === undefined || mirror.hasEnded) {
      return failed('this session has ended in its terminal; resume it there (claude --resume)');
    }
    if (mirror.isBusy || mirror.isInFlight(messageId)) return await this.#inbox.put(command);
    if (this.#idle.isListening(mirror.sessionId)) {
      const outcome = this.#inbox.put(command);
      this.#idle.handOver(mirror);
      return await outcome;
    }
    mirror.offeredToListen(false);
    return this.#inbox.refuseOne(
      messageId,
      `${IN_TERMINAL} and is idle. Type there, or send the message during a turn: the agent gets it when the turn ends. An idle agent gets messages only if it listens`,
    );
  }

  /** Undefined unless a hook waits for an answer. */
  get answer() {
    if (!this.#permissions.hasWaiting) return undefined;
    return async (command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> => {
      // A new line may show that the request was answered in the terminal.
      await this.#mirrors.get(command.sessionId ?? '')?.step();
      const reason = await this.#permissions.answer(command);
      return reason === null ? { state: 'done' } : failed(reason);
    };
  }

  async caughtUp(sessionId: string): Promise<void> {
    await this.#mirrors.get(sessionId)?.step();
  }

  replied(_sessionId: string, messageId: string): void {
    this.#inbox.delivered([messageId]);
  }

  #hook(call: HookCall): string | Promise<string> {
    const answer = routeHook(call, {
      mirror: (sessionId, file) => this.#mirror(sessionId, file),
      obligations: () => this.#context.obligations(),
      inbox: this.#inbox,
      permissions: this.#permissions,
      offer: (mirror) => this.#idle.offerTo(mirror),
      log: (level, message) => this.#context.log(level, message),
    });
    this.#context.changed();
    return answer;
  }

  #mirror(sessionId: string, file: string): SessionMirror | null {
    const known = this.#mirrors.get(sessionId);
    if (known) return known;
    if (this.#options.sessionId !== undefined && this.#options.sessionId !== sessionId) return null;
    const name = CURSOR + sessionId;
    const stored = this.#stored.get(name);
    const mirror = new SessionMirror({
      sessionId,
      file,
      state: stored === undefined ? null : parseMirrorState(stored),
      emit: (outputs, state) => {
        const value = JSON.stringify(state);
        this.#stored.set(name, value);
        return this.#context.emit(sessionId, outputs, [{ name, value }]);
      },
      onDelivered: (messageIds) => this.#inbox.delivered(messageIds),
      onTurnEnded: () => this.#idle.turnEnded(mirror),
      onRequestOpened: (value) => this.#permissions.opened(sessionId, value),
      onRequestResolved: (requestId) => this.#permissions.resolved(sessionId, requestId),
      log: (level, message) => this.#context.log(level, message),
    });
    this.#mirrors.set(sessionId, mirror);
    this.#context.log('info', `following session ${sessionId} in ${file}`);
    return mirror;
  }

  /** Forgets a session that can't be resumed, because Claude Code removed its transcript. */
  async #forget(sessionId: string): Promise<void> {
    const name = CURSOR + sessionId;
    this.#stored.delete(name);
    await this.#context.emit(sessionId, [], [{ name, value: null }]);
  }

  #of(about: Fields): SessionMirror | null {
    return this.#mirrors.get(textOf(about.session_id) ?? textOf(about.sessionId) ?? '') ?? null;
  }

  #selfReport(state: string, about: Fields, at: number | null = null): void {
    const mirror = this.#of(about);
    if (mirror === null) return;
    const claim = claimOf(about, at);
    // The stop hook reports `idle` when its main call failed.
    if (state === 'idle') mirror.stopped(null, textOf(about.last_assistant_message), claim);
    else if (state === 'busy') mirror.prompted(claim);
    else if (state === 'compacting') mirror.report(state, claim);
    void mirror.step();
    this.#context.changed();
  }

  #hookFatal(failure: HookFailure, about: Fields): void {
    const { logger } = this.#options;
    const mirror = this.#of(about);
    logHookFailure(logger, failure, mirror?.sessionId ?? null);
    if (mirror === null) return;
    const { hook, error } = failure;
    const { text } = logger.redactor.redact('hooks', `The ${hook} hook failed (${error}). The agent continues.`);
    const value = { text, tone: 'error', kind: 'hook_fatal' };
    const event = { type: 'CUSTOM', name: CUSTOM.notice, value };
    void this.#context.emit(mirror.sessionId, [{ occurredAt: Date.now(), event }]);
  }

  #poll(): void {
    for (const [sessionId, mirror] of this.#mirrors) {
      // The stored state is enough to resume the session later.
      if (mirror.isLeft) this.#idle.sessionLeft(sessionId);
      if (mirror.isFinal) this.#mirrors.delete(sessionId);
      else void mirror.step();
    }
  }

  async #checkProcesses(): Promise<void> {
    for (const mirror of [...this.#mirrors.values()]) {
      const { process, hasEnded } = mirror;
      if (hasEnded || process === null || !(await hasExited(process))) continue;
      // A hook may have reported another process meanwhile.
      if (mirror.process === process) mirror.died();
    }
  }
}

export interface HookRouterOptions {
  /** The mirror of a session; null if it is not followed. */
  mirror: (sessionId: string, file: string) => SessionMirror | null;
  obligations: () => readonly OpenObligation[];
  inbox: MessageInbox;
  permissions: PermissionHooks;
  /** Hint that the agent can listen while idle; null if not needed. */
  offer: (mirror: SessionMirror) => string | null;
  log: (level: 'debug' | 'info', message: string) => void;
}

/**
 * Applies each hook of a terminal session to its mirror and decides what the hook prints. The agent waits for the hook,
 * so decisions use memory only. The one exception is a hold, which is stored first unless the disk is slow. A hook with a
 * waiting time, which runs beside a question in the terminal, gets its response once a person has answered.
 *
 * @see the hooks' stdin, CLI 2.1.329 and 2.1.332: tests/fixtures/recordings/hooks
 */
export function routeHook(call: HookCall, options: HookRouterOptions): string | Promise<string> {
  const { event, input, pid, at, from = null } = call;
  const sessionId = textOf(input.session_id);
  const file = textOf(input.transcript_path);
  if (sessionId === null || file === null) return '';
  const mirror = options.mirror(sessionId, file);
  if (mirror === null) return '';
  const isOfOldProcess = !mirror.hookRan(pid, file, at);
  if (isOfOldProcess && event === 'SessionEnd') return '';
  if (from !== null) mirror.startedAs(from);
  options.log('debug', `${event} ${sessionId}`);
  const answer = ROUTES.get(event)?.(mirror, call, claimOf(input, at), options) ?? '';
  void mirror.step();
  return answer;
}

/** @param at time of the hook by its own clock */
function claimOf(input: Fields, at: number | null): HookClaim {
  return { at, promptId: textOf(input.prompt_id) };
}

type Route = (
  mirror: SessionMirror,
  call: HookCall,
  claim: HookClaim,
  options: HookRouterOptions,
) => Promise<string> | undefined;

/** Longest time the agent waits for the disk. The hook gives up after 900 ms. */
const STORED_MS = 300;

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  [
    'SessionStart',
    (mirror, { input }, claim) => {
      // After a compaction, the session continues its open work.
      if (input.source !== 'compact') mirror.began(claim);
      return undefined;
    },
  ],
  ['UserPromptSubmit', (mirror, _call, claim) => void mirror.prompted(claim)],
  ['Stop', stop],
  ['StopFailure', (mirror, { input }, claim) => void mirror.stopped(failureOf(input), lastTextOf(input), claim)],
  ['PreCompact', (mirror, _call, claim) => void mirror.report('compacting', claim)],
  ['PostCompact', (mirror, _call, claim) => void mirror.report(mirror.openRunId === null ? 'idle' : 'busy', claim)],
  ['PermissionRequest', permissionRequested],
  ['SessionEnd', (mirror, { input }, claim) => void mirror.end(endOf(textOf(input.reason)), claim)],
]);

function permissionRequested(
  mirror: SessionMirror,
  call: HookCall,
  _claim: HookClaim,
  { permissions }: HookRouterOptions,
) {
  const { input, withinMs, signal } = call;
  const tool = textOf(input.tool_name);
  if (tool === null) return undefined;
  const toolInput = fieldsOf(input.tool_input);
  const waitsMs = mirror.isLeft ? null : withinMs;
  // A title can't change later, so it mentions the terminal only if the request can't be answered here.
  const title = waitsMs === null ? `${toolTitle(tool)}: answer it in the terminal` : undefined;
  const expiresAt = waitsMs === null ? undefined : Date.now() + waitsMs;
  const output =
    waitsMs === null
      ? undefined
      : permissions.hold({
          ...{ sessionId: mirror.sessionId, tool, input: toolInput, withinMs: waitsMs, signal },
          suggestions: listOf(input.permission_suggestions),
        });
  mirror.requestOpened(tool, toolInput, compact({ title, agentID: input.agent_id, expiresAt }));
  return output;
}

function stop(mirror: SessionMirror, { input }: HookCall, claim: HookClaim, options: HookRouterOptions) {
  const { obligations, inbox, log } = options;
  // Concurrent hooks arrive in any order, so the session may have ended, without an agent to hold.
  const text = lastTextOf(input);
  if (mirror.isLeft) return void mirror.stopped(null, text, claim);
  const tasks = Array.isArray(input.background_tasks) ? listOf(input.background_tasks) : undefined;
  const runs = tasks?.flatMap((task) => textOf(fieldsOf(task).id) ?? []);
  const unseen = inbox.waitingFor(mirror.sessionId).filter(({ messageId }) => !mirror.isInFlight(messageId));
  const waiting = obligations().filter(
    ({ messageId, sessionId }) =>
      sessionId === mirror.sessionId &&
      // Typed messages are answered in the terminal; messages in flight are being answered.
      !mirror.wasTyped(messageId) &&
      !mirror.isInFlight(messageId) &&
      !inbox.wasRefused(messageId) &&
      !unseen.some((message) => message.messageId === messageId),
  );
  const replies = [...unseen, ...waiting.map((one) => ({ ...one, unseen: false }))];
  const offer = options.offer(mirror);
  const decision = stopDecision(replies, input.stop_hook_active === true, offer);
  if (decision === null) {
    mirror.stopped(null, text, claim, runs);
    return undefined;
  }
  if (offer !== null) mirror.offeredToListen(true);
  const replyCount = decision.messageIds.length;
  const why = replyCount === 0 ? 'hint about listening' : `${replyCount} pending replies`;
  log('info', `holding ${mirror.sessionId} at the end of its turn: ${why}`);
  return resolveWithin(STORED_MS, mirror.offer(decision, claim)).then(() => decision.output);
}

function resolveWithin(ms: number, done: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void done.finally(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Returns the last text of the agent, or the CLI's message about a failed API call. */
function lastTextOf(input: Fields): string | null {
  return textOf(input.last_assistant_message);
}

function failureOf(input: Fields): string {
  return textOf(input.error_details) ?? textOf(input.error) ?? 'The model API failed.';
}

/** @see SessionEnd in the documentation of Claude Code */
function endOf(reason: string | null): string {
  if (reason === 'clear') return 'cleared; the terminal started a new session';
  if (reason === 'resume') return 'the terminal switched to another session';
  return reason === 'logout' ? 'logged out' : 'the terminal session was closed';
}
