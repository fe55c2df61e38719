import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { claudeVersion } from '../../adapters/claude/claude-adapter';
import type { HookClaim, HookMoment } from '../../adapters/claude/stop-hooks';
import { TranscriptAdapter } from '../../adapters/claude/transcript-adapter';
import { stopFeedbackOf } from '../../adapters/claude/transcript-line';
import { setBounded } from '../../adapters/wire';
import { hasExited, type ProcessIdentity, startMarkOf, startTimeOf } from '../../host/process-lookup';
import type { StopDecision } from './message-inbox';
import { MessageTracker } from './message-tracker';
import {
  type AgentActivity,
  isCommandOver,
  isEndingOver,
  isHookOverdue,
  isStopUnmatched,
  isTurnOver,
  type MirrorState,
  newMirrorState,
  type QuietPeriods,
  SelfReport,
  type SessionEnding,
} from './mirror-state';
import { TranscriptFiles, type TranscriptLine } from './transcript-files';

export interface SessionMirrorOptions {
  sessionId: string;
  file: string;
  /** Stored state of the previous mirror. */
  state: MirrorState | null;
  /** Returns a promise if storing takes time. */
  emit: (outputs: TimedEvent[], state: MirrorState) => void | Promise<void>;
  onDelivered: (messageIds: string[]) => void;
  onTurnEnded: () => void;
  /** Called when a request is opened. @param value of `request:opened` */
  onRequestOpened?: (value: Fields) => void;
  /** Called when a request is answered or withdrawn. */
  onRequestResolved?: (requestId: string) => void;
  log: (level: 'debug' | 'info' | 'warn', message: string) => void;
  now?: () => number;
}

/** Time for which an ended session is watched for late writes. */
const LATE_MS = 10_000;
const MAX_REQUESTS = 64;

/** @see CLAUDE_CODE_ENTRYPOINT, and `entrypoint` in transcript lines, CLI 2.1.332; also `sdk-cli`, `sdk-ts` */
const CLI = 'cli';

const LEFT: SessionEnding = { reason: 'the terminal session was closed', isAsked: true };

/**
 * Mirrors one terminal session of Claude Code from its transcript.
 *
 * Ordering: events follow the lines of the transcript.
 * Failure: file positions are stored with the events up to them. After a kill, the next mirror rereads the lines to
 * restore its state and emits only new ones.
 */
export class SessionMirror {
  readonly #options: SessionMirrorOptions;
  readonly #now: () => number;
  readonly #adapter: TranscriptAdapter;
  readonly #files: TranscriptFiles;
  readonly #report: SelfReport;
  #state: MirrorState;
  /** True while lines that the previous mirror emitted are reread. */
  #isRestoring = false;
  #lastLineAt = 0;
  /** Program and version; null until a transcript line has them. */
  provider: string | null = null;
  /** True if a person uses the session. `claude -p` is not interactive: a wait would keep it running. */
  isInteractive = false;
  #ending: (SessionEnding & { at: number; ranAt: number }) | null = null;
  #began: number;
  #ended: (SessionEnding & { at: number }) | null = null;
  /**
   * Time at which another process took over the session, until the open work of the old process is closed. Epoch
   * milliseconds.
   */
  #replacedAt: number | null = null;
  /** True if the previous process still runs. */
  #isShared = false;
  readonly messages: MessageTracker;
  /** Values of open requests. */
  readonly #requests = new Map<string, Fields>();
  #work: Promise<void>;

  constructor(options: SessionMirrorOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#adapter = new TranscriptAdapter({ sessionId: options.sessionId });
    this.#state = structuredClone(options.state ?? newMirrorState(options.file));
    this.#state.file = options.file;
    this.messages = new MessageTracker(this.#state);
    this.#report = new SelfReport(this.#now());
    this.#files = new TranscriptFiles({
      read: this.#state,
      subagents: () => this.#adapter.tasks.subagents,
      onLines: (lines) => this.#onLines(lines),
      log: options.log,
    });
    this.#began = this.#state.began;
    const at = this.#now();
    if (this.#state.ending !== null) this.#ending = { ...this.#state.ending, at, ranAt: at };
    this.#work = options.state ? this.#guarded(() => this.#restore(options.state as MirrorState)) : Promise.resolve();
  }

  get sessionId(): string {
    return this.#options.sessionId;
  }

  get hasEnded(): boolean {
    return this.#state.ended;
  }

  /** True if the terminal session was closed or has ended: no agent is left to hold. */
  get isLeft(): boolean {
    return this.#ending !== null || this.#state.ended;
  }

  /** True if the session has ended and the time for late hooks and writes has passed. */
  get isFinal(): boolean {
    return this.#state.ended && (this.#ended === null || this.#now() - this.#ended.at >= LATE_MS);
  }

  /** Process of the last hook. */
  get process(): ProcessIdentity | null {
    return this.#state.process;
  }

  get selfReport(): AgentActivity {
    return this.#report.activity;
  }

  get openRunId(): string | null {
    return this.#adapter.openRunId;
  }

  /** True while a turn is running, which a stop hook will follow. */
  get isBusy(): boolean {
    return !this.#state.ended && (this.#adapter.openRunId !== null || this.#report.activity === 'busy');
  }

  /** True if the message was typed in the terminal and is answered there. */
  wasTyped(messageId: string): boolean {
    return this.#files.has(messageId);
  }

  /** True if the message is in delivery, given to the agent, or answered. */
  isInFlight(messageId: string): boolean {
    return this.messages.has(messageId, this.#now());
  }

  /** True if the transcript shows the message. */
  wasDelivered(messageId: string): boolean {
    return this.messages.hasReached(messageId);
  }

  /**
   * @param claimedAt time of the hook by its own clock, epoch milliseconds
   * @returns false for a hook of a replaced process
   */
  hookRan(pid: number | null, file: string | null, claimedAt: number | null = null): boolean {
    const at = Math.min(claimedAt ?? this.#now(), this.#now());
    const { process: known, heardAt } = this.#state;
    if (pid !== null && known !== null && pid !== known.pid && at < heardAt) return false;
    if (pid !== null) {
      if (pid !== known?.pid) this.#state.process = { pid, birth: null };
      this.#state.heardAt = Math.max(heardAt, at);
      this.#enqueue(() => this.#identifyProcess(pid, known, heardAt));
    }
    if (file !== null && file !== this.#state.file) {
      this.#options.log('info', `the transcript of ${this.sessionId} moved to ${file}`);
      this.#state.file = file;
    }
    return true;
  }

  /** @param entrypoint from the hook environment or a transcript line */
  startedAs(entrypoint: string): void {
    this.isInteractive = entrypoint === CLI;
  }

  /**
   * Identifies the process of a hook by its start time too, because PIDs are reused. Runs while the hook waits, so the
   * process still exists.
   * @param before process of the previous hooks
   * @param heardAt time of the last previous hook, epoch milliseconds
   */
  async #identifyProcess(pid: number, before: ProcessIdentity | null, heardAt: number): Promise<void> {
    const birth = await startMarkOf(pid);
    const { process } = this.#state;
    if (process?.pid !== pid) return;
    const isKnown = process.birth === birth && before?.pid === pid;
    if (isKnown) return;
    this.#state.process = { pid, birth };
    const isSame = before?.pid === pid && (before.birth === null || birth === null || before.birth === birth);
    // Two terminals may share a session; the work of the other terminal continues.
    this.#isShared = before !== null && before.pid !== pid && !(await hasExited(before));
    // Work from before the start of a new process, or from before the last hook of the previous one, is not its own.
    if (!isSame && !this.#isShared) this.#beganAt(Math.max(startTimeOf(birth) ?? 0, before === null ? 0 : heardAt));
    this.#emit([], true);
  }

  /**
   * Handles the start or resumption of the session by a process without open work. An out-of-order hook changes nothing.
   */
  began(claim?: HookClaim): void {
    const { at } = this.#momentOf(claim);
    if (this.#ending !== null && this.#ending.ranAt > at) return;
    this.#ending = null;
    this.#ended = null;
    this.#began = Math.max(this.#began, at);
    this.#enqueue(() => {
      if (!this.#isShared) this.#beganAt(at);
    });
    this.#report.update('idle', at, this.#now());
  }

  /** @param at start of the new process, epoch milliseconds */
  #beganAt(at: number): void {
    if (this.#ending !== null && this.#ending.ranAt > at) return;
    this.#ending = null;
    this.#ended = null;
    this.#began = Math.max(this.#began, at);
    this.#replacedAt = Math.max(this.#replacedAt ?? 0, at);
    this.#state.ending = null;
    this.#state.ended = false;
    this.#state.began = this.#began;
  }

  report(activity: AgentActivity, claim?: HookClaim): void {
    this.#report.update(activity, this.#momentOf(claim).at, this.#now());
  }

  prompted(claim?: HookClaim): void {
    const [moment, heardAt] = [this.#momentOf(claim), this.#now()];
    this.#report.update('busy', moment.at, heardAt);
    this.#enqueue(() => {
      this.#adapter.stops.prompted(moment, heardAt);
      this.#emit([], true);
    });
  }

  /**
   * Handles a stop hook that ran without a hold. The turn ends once the transcript shows the last text, which comes
   * after the hook.
   * @param text last text of the agent, from the hook
   * @param runs ids of continuing background work, from the hook
   */
  stopped(
    failure: string | null = null,
    text: string | null = null,
    claim?: HookClaim,
    runs?: readonly string[],
  ): void {
    const [moment, heardAt] = [this.#momentOf(claim), this.#now()];
    this.#report.update('idle', moment.at, heardAt);
    this.messages.offers.withdraw(moment);
    this.#enqueue(() => {
      this.#adapter.announced({ ...moment, heardAt, text, failure });
      if (runs !== undefined) this.#adapter.tasks.listed(runs, moment.at);
      this.#emit([], true);
    });
  }

  /** Returns the time of a hook; a hook without one counts as running now. */
  #momentOf({ at, promptId }: HookClaim = { at: null, promptId: null }): HookMoment {
    const now = this.#now();
    return { at: Math.min(at ?? now, now), isClocked: at !== null, promptId };
  }

  /**
   * Holds the agent with these messages through its stop hook. The transcript will show whether the hold reached the
   * agent.
   * @returns once stored, so that a later mirror recognizes the hold
   */
  async offer({ messageIds, reason }: Pick<StopDecision, 'messageIds' | 'reason'>, claim?: HookClaim): Promise<void> {
    const [moment, since] = [this.#momentOf(claim), this.#now()];
    this.#report.update('busy', moment.at, since);
    this.messages.offers.put({ messageIds, reason, moment, since });
    await this.keep();
  }

  get wasOfferedToListen(): boolean {
    return this.#state.wasOffered;
  }

  /** @param isOffered false after a message was missed */
  offeredToListen(isOffered: boolean): void {
    this.#state.wasOffered = isOffered;
  }

  /**
   * Runs after pending work.
   * @returns once the changed messages are stored
   */
  async keep(change: (messages: MessageTracker, now: number) => void = () => {}): Promise<void> {
    const stored: (void | Promise<void>)[] = [];
    this.#enqueue(() => {
      change(this.messages, this.#now());
      stored.push(this.#emit([], true));
    });
    await this.#work;
    await stored[0];
  }

  /** @param about with `expiresAt` until which it can be answered elsewhere */
  requestOpened(tool: string, input: unknown, about: Fields): void {
    this.#enqueue(() => {
      this.#state.asks.push({ tool, input, isHeld: about.expiresAt !== undefined });
      this.#emit(this.#adapter.requestOpened(tool, input, about, this.#now()));
    });
  }

  requestAnswered(requestId: string, answer: Fields): void {
    this.#enqueue(() => void this.#emit(this.#adapter.requestAnswered(requestId, answer, this.#now()), true));
  }

  /** Emits the request again without an expiry: only the terminal can answer it now. */
  releaseToTerminal(requestId: string): void {
    this.#enqueue(() => {
      const { expires_at: _, ...value } = this.#requests.get(requestId) ?? {};
      if (value.request_id !== requestId) return;
      const event = { type: 'CUSTOM', name: CUSTOM.requestOpened, value };
      void this.#options.emit([{ occurredAt: this.#now(), event }], structuredClone(this.#state));
    });
  }

  /** Ends a session closed on purpose: its open work is cancelled, not failed. */
  end(reason: string, claim?: HookClaim): void {
    this.#end({ reason, isAsked: true }, claim);
  }

  /** Handles a process that ended without a hook. */
  died(): void {
    // The process may have died at any time, and another process may already run the session.
    const at = Math.max(this.#state.heardAt, this.#began);
    this.#end({ reason: 'the terminal process exited', isAsked: false }, { at, promptId: null });
  }

  #end(ending: SessionEnding, claim?: HookClaim): void {
    const { at } = this.#momentOf(claim);
    if (this.#ending !== null || at < this.#began) return;
    this.#ending = { ...ending, at: this.#now(), ranAt: at };
    this.#enqueue(() => {
      this.#state.ending = ending;
      this.#emit([], true);
    });
  }

  /** Reads new lines and infers the state of a silent session. Never rejects. */
  step(): Promise<void> {
    this.#enqueue(() => this.#step());
    return this.#work;
  }

  async #step(): Promise<void> {
    await this.#files.readNewLines();
    const now = this.#now();
    this.#replace(now);
    this.#emit(this.#adapter.unlisted(now));
    const quiet = this.#quietPeriods(now);
    // Checked first: if the terminal is closed right after a turn, the stop hook ends the turn, without an interruption.
    const isOver = isEndingOver(quiet);
    const { ofOpenTurn: own, ahead } = this.#adapter.stops;
    if (own !== null && isTurnOver(own, quiet)) {
      this.#emit(this.#adapter.stopped(now), true);
    } else if (own === null && ahead !== null && isStopUnmatched(ahead, quiet)) {
      if (this.#adapter.openRunId === null) this.#adapter.stops.drop(ahead);
      this.#emit(this.#adapter.stopped(now), true);
    }
    if (this.#adapter.pendingCommand !== null && isCommandOver(quiet)) {
      this.#state.settled = this.#adapter.pendingCommand;
      this.#emit(this.#adapter.commandSettled(), true);
    }
    if (this.#adapter.hasFinished && isHookOverdue(quiet)) {
      this.#options.log('info', `session ${this.sessionId} ended its turn without a stop hook`);
      this.#report.inferIdle(now);
      this.#emit(this.#adapter.stopped(now));
    }
    if (this.#report.activity === 'busy' && this.#adapter.openRunId === null && isHookOverdue(quiet)) {
      this.#options.log('warn', `session ${this.sessionId} reported busy but is doing nothing; treating it as idle`);
      this.#report.inferIdle(now);
      this.messages.offers.drop();
    }
    if (this.#ending !== null && isOver) {
      const { reason, isAsked } = this.#ending;
      this.#ending = null;
      this.#state.ending = null;
      if (this.#state.ended) return;
      this.#state.ended = true;
      this.#ended = { reason, isAsked, at: now };
      this.messages.offers.drop();
      this.#emit(this.#adapter.ended(now, { reason, isAsked }), true);
    }
    // Late lines may have opened a turn, so the session ends again.
    if (this.#state.ended && this.#adapter.openRunId !== null) {
      const { reason, isAsked } = this.#ended ?? LEFT;
      this.#emit(this.#adapter.ended(now, { reason, isAsked }), true);
    }
  }

  /** Closes the open work of an earlier process, whose lines are read by now. */
  #replace(now: number): void {
    if (this.#replacedAt === null) return;
    const at = this.#replacedAt;
    this.#replacedAt = null;
    this.#emit(this.#adapter.replaced(at, now), true);
  }

  #quietPeriods(now: number): QuietPeriods {
    const { ofOpenTurn: own } = this.#adapter.stops;
    const lacksText = own !== null && own.text === null;
    return {
      now,
      lastLineAt: this.#lastLineAt,
      reportedAt: this.#report.heardAt,
      leftAt: this.#ending?.at ?? null,
      lacksFinalText: this.#adapter.lacksFinalText || (lacksText && !this.#adapter.hasFinished),
      isHeld: this.messages.offers.isAny,
      heldSince: this.messages.offers.sinceOf((moment) => !this.#adapter.stops.isAhead(moment)),
      handedAt: this.messages.handedAt,
    };
  }

  #onLines(lines: readonly TranscriptLine[]): void {
    const outputs = lines.flatMap(({ fields, key }) => {
      this.provider = claudeVersion(fields.version) ?? this.provider;
      const entrypoint = textOf(fields.entrypoint);
      if (entrypoint !== null) this.startedAs(entrypoint);
      const feedback = this.#isRestoring ? null : stopFeedbackOf(fields);
      if (feedback !== null) this.#handOver(this.messages.offers.confirm(feedback));
      const madeAt = Date.parse(textOf(fields.timestamp) ?? '');
      // This is the first line of the new process.
      const replaced = this.#replacedAt !== null && madeAt > this.#replacedAt ? this.#replacedAt : null;
      if (replaced !== null) this.#replacedAt = null;
      const ended = replaced === null ? [] : this.#adapter.replaced(replaced, this.#now());
      const events = [...ended, ...this.#adapter.read(fields, key, this.#now())];
      // The turn that the wait woke is open by now.
      this.#handOver(this.messages.waited.read(fields));
      return events;
    });
    if (this.#isRestoring) return;
    this.#lastLineAt = this.#now();
    this.#emit(outputs, true);
  }

  #handOver(ids: readonly string[]): void {
    if (ids.length === 0) return;
    this.messages.delivered(ids, this.#now());
    this.#adapter.messagesDelivered(ids);
    this.#options.onDelivered([...ids]);
  }

  #emit(outputs: TimedEvent[], isChanged = false): void | Promise<void> {
    for (const { event } of outputs) {
      const value = fieldsOf(event.value);
      if (event.name === CUSTOM.requestResolved) this.#resolved(value);
      if (event.name === CUSTOM.requestOpened) this.#opened(value);
      if (event.type !== 'RUN_FINISHED' && event.type !== 'RUN_ERROR') continue;
      const isAnswer = event.type === 'RUN_FINISHED' && fieldsOf(event.outcome).type === 'success';
      this.messages.turnEnded(isAnswer, (moment) => !this.#adapter.stops.isAhead(moment));
      this.#state.asks = [];
      this.#options.onTurnEnded();
    }
    this.#state.open = this.#adapter.openRunId !== null;
    this.#state.closed = this.#adapter.finalText.closed;
    Object.assign(this.#state, this.#adapter.tasks.unlistedState);
    Object.assign(this.#state, this.messages.state);
    const { stops, unheard, prompts, isPromptHeard } = this.#adapter.stops.state;
    this.#state.isPromptHeard = isPromptHeard;
    this.#state.prompts = [...prompts];
    this.#state.stops = [...stops];
    this.#state.unheard = unheard.map((texts) => [...texts]);
    if (outputs.length > 0 || isChanged) return this.#options.emit(outputs, structuredClone(this.#state));
  }

  #opened(value: Fields): void {
    this.#options.log('debug', `request in the terminal: ${textOf(value.title)}`);
    setBounded(this.#requests, `${value.request_id}`, value, MAX_REQUESTS);
    this.#options.onRequestOpened?.(value);
  }

  #resolved({ request_id: requestId }: Fields): void {
    this.#state.asks.shift();
    this.#requests.delete(`${requestId}`);
    this.#options.onRequestResolved?.(`${requestId}`);
  }

  /** Restores the state of the previous mirror without emitting its events. */
  async #restore(was: MirrorState): Promise<void> {
    const now = this.#now();
    this.#isRestoring = true;
    this.#replacedAt = was.began > 0 ? was.began : null;
    try {
      await this.#files.reread(was);
    } finally {
      this.#isRestoring = false;
    }
    if (this.#replacedAt !== null) this.#adapter.replaced(this.#replacedAt, now);
    this.#replacedAt = null;
    if (was.settled !== null && was.settled === this.#adapter.pendingCommand) this.#adapter.commandSettled();
    this.#adapter.restoreUnlisted(was, now);
    if (!was.open) this.#adapter.stopped(now);
    this.#adapter.stops.restore(was);
    this.#adapter.finalText.restore(was.closed);
    if (was.ended) this.#adapter.ended(now, {});
    const reopened = was.asks.flatMap(({ tool, input, isHeld }) => {
      const events = this.#adapter.requestOpened(tool, input, {}, now);
      // The waiting hook lost the previous companion, so the request is emitted again, for the terminal only.
      return isHeld ? events : [];
    });
    this.#adapter.messagesDelivered(was.handed);
    this.messages.restore(was, now);
    this.#emit(reopened);
  }

  #enqueue(work: () => void | Promise<void>): void {
    this.#work = this.#work.then(() => this.#guarded(work));
  }

  async #guarded(work: () => void | Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.log('warn', `could not follow session ${this.sessionId}: ${String(error)}`);
    }
  }
}
