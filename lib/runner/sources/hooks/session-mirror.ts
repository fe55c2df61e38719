import { CUSTOM, type TimedEvent } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { claudeVersion } from '../../adapters/claude/claude-version';
import type { HookClaim, HookMoment } from '../../adapters/claude/heard-stops';
import { TranscriptAdapter } from '../../adapters/claude/transcript';
import { stopFeedbackIn } from '../../adapters/claude/transcript-line';
import { remember } from '../../adapters/remember';
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

/**
 * One session of an interactive Claude Code, mirrored from its transcript.
 *
 * Ordering: events come in the order of the transcript's lines.
 * Failure: the place in the files is handed over together with the events up to it. A mirror that comes after a kill
 * reads the lines before it again, to know what is open, and tells only what comes after.
 */
export interface SessionMirrorOptions {
  sessionId: string;
  file: string;
  /** As stored by the mirror before this one. */
  state: MirrorState | null;
  /** @returns a promise where storing it takes time: kept once both are on disk */
  emit: (outputs: TimedEvent[], state: MirrorState) => void | Promise<void>;
  onHandedOver: (messageIds: string[]) => void;
  onTurnEnded: () => void;
  /** The terminal asks. @param value of the `request:opened` */
  onRequestOpened?: (value: Fields) => void;
  /** It was answered, or is not asked any more. */
  onRequestResolved?: (requestId: string) => void;
  log: (level: 'debug' | 'info' | 'warn', message: string) => void;
  now?: () => number;
}

/** How long a session that has ended is still watched for what it writes. */
const LATE_MS = 10_000;
/** Most requests that are remembered as they were told. */
const MOST_REQUESTS = 64;

/** @see CLAUDE_CODE_ENTRYPOINT, and `entrypoint` of the transcript's lines, CLI 2.1.332; also `sdk-cli`, `sdk-ts` */
const CLI = 'cli';

const LEFT: SessionEnding = { reason: 'the terminal session was left', isAsked: true };

export class SessionMirror {
  readonly #options: SessionMirrorOptions;
  readonly #now: () => number;
  readonly #adapter: TranscriptAdapter;
  readonly #files: TranscriptFiles;
  readonly #report: SelfReport;
  #state: MirrorState;
  /** What is read was told by the mirror before this one. */
  #isRecalling = false;
  #lastLineAt = 0;
  #provider: string | null = null;
  #isInteractive = false;
  #ending: (SessionEnding & { at: number; ranAt: number }) | null = null;
  #began: number;
  #ended: (SessionEnding & { at: number }) | null = null;
  /** Since when another process serves the session, until what its predecessor had open is closed. Epoch milliseconds. */
  #replacedAt: number | null = null;
  /** The process of the hooks before the last ones is still there. */
  #isShared = false;
  readonly #messages: MessageTracker;
  /** Of open requests: what they were told with. */
  readonly #requests = new Map<string, Fields>();
  #work: Promise<void>;

  constructor(options: SessionMirrorOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#adapter = new TranscriptAdapter({ sessionId: options.sessionId });
    this.#state = structuredClone(options.state ?? newMirrorState(options.file));
    this.#state.file = options.file;
    this.#messages = new MessageTracker(this.#state);
    this.#report = new SelfReport(this.#now());
    this.#files = new TranscriptFiles({
      read: this.#state,
      subagents: () => this.#adapter.subagents,
      onLines: (lines) => this.#lines(lines),
      log: options.log,
    });
    this.#began = this.#state.began;
    const at = this.#now();
    if (this.#state.ending !== null) this.#ending = { ...this.#state.ending, at, ranAt: at };
    this.#work = options.state ? this.#guarded(() => this.#recall(options.state as MirrorState)) : Promise.resolve();
  }

  get sessionId(): string {
    return this.#options.sessionId;
  }

  get hasEnded(): boolean {
    return this.#state.ended;
  }

  /** The session was left: nobody is there to be held for anything. */
  get isLeft(): boolean {
    return this.#ending !== null || this.#state.ended;
  }

  /** It has ended, and what a late hook or a slow disk may bring has had its time. */
  get isStill(): boolean {
    return this.#state.ended && (this.#ended === null || this.#now() - this.#ended.at >= LATE_MS);
  }

  /** Of the agent, as the last hook told. */
  get process(): ProcessIdentity | null {
    return this.#state.process;
  }

  get selfReport(): AgentActivity {
    return this.#report.says;
  }

  get openRunId(): string | null {
    return this.#adapter.openRunId;
  }

  /** Of the agent, as its transcript told last. */
  get provider(): string | null {
    return this.#provider;
  }

  /** Somebody sits before it. `claude -p` would go on until all that it runs in the background has ended. */
  get isInteractive(): boolean {
    return this.#isInteractive;
  }

  /** A turn goes on, so its end will come and with it the stop hook. */
  get isBusy(): boolean {
    return !this.#state.ended && (this.#adapter.openRunId !== null || this.#report.says === 'busy');
  }

  get messages(): MessageTracker {
    return this.#messages;
  }

  /** Whether the message was typed in the terminal: it is answered there. */
  wasTyped(messageId: string): boolean {
    return this.#files.has(messageId);
  }

  /** Messages that are before the agent, are about to be, or were and have been answered. */
  isInHand(messageId: string): boolean {
    return this.#messages.has(messageId, this.#now());
  }

  /** Whether the transcript says that it was put before the agent. */
  wasHandedOver(messageId: string): boolean {
    return this.#messages.hasReached(messageId);
  }

  /**
   * A hook of this session ran.
   *
   * @param claimedAt when, by its own clock; epoch milliseconds
   * @returns false if it is of a process that another one has replaced since
   */
  heard(pid: number | null, file: string | null, claimedAt: number | null = null): boolean {
    const at = Math.min(claimedAt ?? this.#now(), this.#now());
    const { process: known, heardAt } = this.#state;
    if (pid !== null && known !== null && pid !== known.pid && at < heardAt) return false;
    if (pid !== null) {
      if (pid !== known?.pid) this.#state.process = { pid, birth: null };
      this.#state.heardAt = Math.max(heardAt, at);
      this.#do(() => this.#isOf(pid, known, heardAt));
    }
    if (file !== null && file !== this.#state.file) {
      this.#options.log('info', `the transcript of ${this.sessionId} is ${file} now`);
      this.#state.file = file;
    }
    return true;
  }

  /** @param entrypoint by the environment of a hook, or a line of the transcript, which may come later */
  startedAs(entrypoint: string): void {
    this.#isInteractive = entrypoint === CLI;
  }

  /**
   * Looked up while the hook waits, so the process is still there. The same pid may by now be another process.
   *
   * @param before the process of the hooks before, if any
   * @param heardAt when the last of those ran, epoch milliseconds
   */
  async #isOf(pid: number, before: ProcessIdentity | null, heardAt: number): Promise<void> {
    const birth = await startMarkOf(pid);
    const { process } = this.#state;
    if (process?.pid !== pid) return;
    const isKnown = process.birth === birth && before?.pid === pid;
    if (isKnown) return;
    this.#state.process = { pid, birth };
    const isSame = before?.pid === pid && (before.birth === null || birth === null || before.birth === birth);
    // Two terminals may have the same session open: what the other one does goes on.
    this.#isShared = before !== null && before.pid !== pid && !(await hasExited(before));
    // A process that is new here owns nothing that was written before it was born, or while another one called.
    if (!isSame && !this.#isShared) this.#beganAt(Math.max(startTimeOf(birth) ?? 0, before === null ? 0 : heardAt));
    this.#tell([], true);
  }

  /**
   * Begun, or resumed, by a process that owns nothing that is open. A hook that is heard behind later ones changes
   * nothing they said.
   */
  began(claim?: HookClaim): void {
    const { at } = this.#momentOf(claim);
    if (this.#ending !== null && this.#ending.ranAt > at) return;
    this.#ending = null;
    this.#ended = null;
    this.#began = Math.max(this.#began, at);
    this.#do(() => {
      if (!this.#isShared) this.#beganAt(at);
    });
    this.#report.heard('idle', at, this.#now());
  }

  /** A process that owns nothing older serves the session. @param at epoch milliseconds */
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

  report(says: AgentActivity, claim?: HookClaim): void {
    this.#report.heard(says, this.#momentOf(claim).at, this.#now());
  }

  /** Somebody asks for a turn. */
  prompted(claim?: HookClaim): void {
    const [moment, heardAt] = [this.#momentOf(claim), this.#now()];
    this.#report.heard('busy', moment.at, heardAt);
    this.#do(() => {
      this.#adapter.stops.prompted(moment, heardAt);
      this.#tell([], true);
    });
  }

  /**
   * The stop hook ran and did not hold the agent. Its turn is told to be over when the transcript has said what the agent
   * said last: the hook comes before.
   *
   * @param text what the agent said last, by the hook's word
   * @param runs ids of the background work that goes on, by the hook's word
   */
  stopped(
    failure: string | null = null,
    text: string | null = null,
    claim?: HookClaim,
    runs?: readonly string[],
  ): void {
    const [moment, heardAt] = [this.#momentOf(claim), this.#now()];
    this.#report.heard('idle', moment.at, heardAt);
    this.#messages.offers.withdraw(moment);
    this.#do(() => {
      this.#adapter.announced({ ...moment, heardAt, text, failure });
      if (runs !== undefined) this.#adapter.listed(runs, moment.at);
      this.#tell([], true);
    });
  }

  /** A hook that does not say when it ran ran when it is heard. */
  #momentOf({ at, promptId }: HookClaim = { at: null, promptId: null }): HookMoment {
    const now = this.#now();
    return { at: Math.min(at ?? now, now), isClocked: at !== null, promptId };
  }

  /**
   * The stop hook holds the agent with these messages; the transcript will say whether that reached it.
   *
   * @returns once it is stored: a mirror that comes after a kill knows whose the hold is
   */
  async offer({ messageIds, reason }: Pick<StopDecision, 'messageIds' | 'reason'>, claim?: HookClaim): Promise<void> {
    const [moment, since] = [this.#momentOf(claim), this.#now()];
    this.#report.heard('busy', moment.at, since);
    this.#messages.offers.put({ messageIds, reason, moment, since });
    await this.keep();
  }

  /** The agent knows that it can listen while it is idle. */
  get wasOfferedToListen(): boolean {
    return this.#state.wasOffered;
  }

  /** @param isOffered false: somebody has missed that it listens */
  offeredToListen(isOffered: boolean): void {
    this.#state.wasOffered = isOffered;
  }

  /**
   * Does it behind what was begun.
   * @returns once what it changed of the messages is stored
   */
  async keep(change: (messages: MessageTracker, now: number) => void = () => {}): Promise<void> {
    const told: (void | Promise<void>)[] = [];
    this.#do(() => {
      change(this.#messages, this.#now());
      told.push(this.#tell([], true));
    });
    await this.#work;
    await told[0];
  }

  /** @param about with `expiresAt`, it can be answered elsewhere until then */
  asked(tool: string, input: unknown, about: Fields): void {
    this.#do(() => {
      this.#state.asks.push({ tool, input, isHeld: about.expiresAt !== undefined });
      this.#tell(this.#adapter.permissionAsked(tool, input, about, this.#now()));
    });
  }

  /** It was answered elsewhere. */
  answered(requestId: string, answer: Fields): void {
    this.#do(() => void this.#tell(this.#adapter.permissionAnswered(requestId, answer, this.#now()), true));
  }

  /** From now on it can only be answered in the terminal: told again, without a time by which it is over. */
  askedOnlyThere(requestId: string): void {
    this.#do(() => {
      const { expires_at: _, ...value } = this.#requests.get(requestId) ?? {};
      if (value.request_id !== requestId) return;
      const event = { type: 'CUSTOM', name: CUSTOM.requestOpened, value };
      void this.#options.emit([{ occurredAt: this.#now(), event }], structuredClone(this.#state));
    });
  }

  /** Somebody left it: what the agent was at has not failed. */
  end(reason: string, claim?: HookClaim): void {
    this.#end({ reason, isAsked: true }, claim);
  }

  /** Nobody said so: the process is not there any more. */
  died(): void {
    // It may have died at any time since: another process may serve the session by now.
    const at = Math.max(this.#state.heardAt, this.#began);
    this.#end({ reason: 'the terminal’s process is gone', isAsked: false }, { at, promptId: null });
  }

  #end(ending: SessionEnding, claim?: HookClaim): void {
    const { at } = this.#momentOf(claim);
    if (this.#ending !== null || at < this.#began) return;
    this.#ending = { ...ending, at: this.#now(), ranAt: at };
    this.#do(() => {
      this.#state.ending = ending;
      this.#tell([], true);
    });
  }

  /** Reads on, and concludes what no line says. Never rejects. */
  step(): Promise<void> {
    this.#do(() => this.#step());
    return this.#work;
  }

  async #step(): Promise<void> {
    await this.#files.readNewLines();
    const now = this.#now();
    this.#replace(now);
    this.#tell(this.#adapter.unlisted(now));
    const still = this.#stillness(now);
    // A terminal that is left right behind its turn: the stop hook's word stands, the turn was not broken off.
    const isOver = isEndingOver(still);
    const { own, ahead } = this.#adapter.stops;
    if (own !== null && isTurnOver(own, still)) {
      this.#tell(this.#adapter.stopped(now), true);
    } else if (own === null && ahead !== null && isStopUnmatched(ahead, still)) {
      if (this.#adapter.openRunId === null) this.#adapter.stops.drop(ahead);
      this.#tell(this.#adapter.stopped(now), true);
    }
    if (this.#adapter.pendingCommand !== null && isCommandOver(still)) {
      this.#state.settled = this.#adapter.pendingCommand;
      this.#tell(this.#adapter.commandSettled(), true);
    }
    if (this.#adapter.hasSaidLastWord && isHookOverdue(still)) {
      this.#options.log('info', `session ${this.sessionId} has ended its turn, and its stop hook was not heard`);
      this.#report.concluded(now);
      this.#tell(this.#adapter.stopped(now));
    }
    if (this.#report.says === 'busy' && this.#adapter.openRunId === null && isHookOverdue(still)) {
      this.#options.log('warn', `session ${this.sessionId} reported busy but does nothing: it is taken to be idle`);
      this.#report.concluded(now);
      this.#messages.offers.drop();
    }
    if (this.#ending !== null && isOver) {
      const { reason, isAsked } = this.#ending;
      this.#ending = null;
      this.#state.ending = null;
      if (this.#state.ended) return;
      this.#state.ended = true;
      this.#ended = { reason, isAsked, at: now };
      this.#messages.offers.drop();
      this.#tell(this.#adapter.ended(now, { reason, isAsked }), true);
    }
    // Its last words came behind its end: they are told, and the session has ended all the same.
    if (this.#state.ended && this.#adapter.openRunId !== null) {
      const { reason, isAsked } = this.#ended ?? LEFT;
      this.#tell(this.#adapter.ended(now, { reason, isAsked }), true);
    }
  }

  /** Closes what an earlier process had open, once its lines have been read. */
  #replace(now: number): void {
    if (this.#replacedAt === null) return;
    const at = this.#replacedAt;
    this.#replacedAt = null;
    this.#tell(this.#adapter.replaced(at, now), true);
  }

  #stillness(now: number): QuietPeriods {
    const { own } = this.#adapter.stops;
    const saidNone = own !== null && own.text === null;
    return {
      now,
      lastLineAt: this.#lastLineAt,
      reportedAt: this.#report.heardAt,
      leftAt: this.#ending?.at ?? null,
      lacksLastWords: this.#adapter.lacksLastWords || (saidNone && !this.#adapter.hasSaidLastWord),
      isHeld: this.#messages.offers.areOpen,
      heldSince: this.#messages.offers.sinceOf((moment) => !this.#adapter.stops.isAhead(moment)),
      handedAt: this.#messages.handedAt,
    };
  }

  #lines(lines: readonly TranscriptLine[]): void {
    const outputs = lines.flatMap(({ fields, key }) => {
      this.#provider = claudeVersion(fields.version) ?? this.#provider;
      const entrypoint = textOf(fields.entrypoint);
      if (entrypoint !== null) this.startedAs(entrypoint);
      const feedback = this.#isRecalling ? null : stopFeedbackIn(fields);
      if (feedback !== null) this.#handOver(this.#messages.offers.take(feedback));
      const madeAt = Date.parse(textOf(fields.timestamp) ?? '');
      // The first line of the new process: what came before it is the old one's.
      const replaced = this.#replacedAt !== null && madeAt > this.#replacedAt ? this.#replacedAt : null;
      if (replaced !== null) this.#replacedAt = null;
      const ended = replaced === null ? [] : this.#adapter.replaced(replaced, this.#now());
      const events = [...ended, ...this.#adapter.read(fields, key, this.#now())];
      // By now the turn is open in which the agent hears of it.
      this.#handOver(this.#messages.waited.read(fields));
      return events;
    });
    if (this.#isRecalling) return;
    this.#lastLineAt = this.#now();
    this.#tell(outputs, true);
  }

  #handOver(ids: readonly string[]): void {
    if (ids.length === 0) return;
    this.#messages.handedOver(ids, this.#now());
    this.#adapter.handedOver(ids);
    this.#options.onHandedOver([...ids]);
  }

  #tell(outputs: TimedEvent[], moved = false): void | Promise<void> {
    for (const { event } of outputs) {
      const value = fieldsOf(event.value);
      if (event.name === CUSTOM.requestResolved) this.#resolved(value);
      if (event.name === CUSTOM.requestOpened) this.#opened(value);
      if (event.type !== 'RUN_FINISHED' && event.type !== 'RUN_ERROR') continue;
      const isAnswer = event.type === 'RUN_FINISHED' && fieldsOf(event.outcome).type === 'success';
      this.#messages.turnEnded(isAnswer, (moment) => !this.#adapter.stops.isAhead(moment));
      this.#state.asks = [];
      this.#options.onTurnEnded();
    }
    this.#state.open = this.#adapter.openRunId !== null;
    this.#state.closed = this.#adapter.closed;
    Object.assign(this.#state, this.#adapter.unlistedState);
    Object.assign(this.#state, this.#messages.state);
    const { stops, unheard, prompts, isPromptHeard } = this.#adapter.stops.state;
    this.#state.isPromptHeard = isPromptHeard;
    this.#state.prompts = [...prompts];
    this.#state.stops = [...stops];
    this.#state.unheard = unheard.map((said) => [...said]);
    if (outputs.length > 0 || moved) return this.#options.emit(outputs, structuredClone(this.#state));
  }

  #opened(value: Fields): void {
    this.#options.log('debug', `the terminal asks: ${textOf(value.title)}`);
    remember(this.#requests, `${value.request_id}`, value, MOST_REQUESTS);
    this.#options.onRequestOpened?.(value);
  }

  #resolved({ request_id: requestId }: Fields): void {
    this.#state.asks.shift();
    this.#requests.delete(`${requestId}`);
    this.#options.onRequestResolved?.(`${requestId}`);
  }

  /** Brings the adapter to where the mirror before this one stood; the events of that have been told. */
  async #recall(was: MirrorState): Promise<void> {
    const now = this.#now();
    this.#isRecalling = true;
    this.#replacedAt = was.began > 0 ? was.began : null;
    try {
      await this.#files.reread(was);
    } finally {
      this.#isRecalling = false;
    }
    if (this.#replacedAt !== null) this.#adapter.replaced(this.#replacedAt, now);
    this.#replacedAt = null;
    if (was.settled !== null && was.settled === this.#adapter.pendingCommand) this.#adapter.commandSettled();
    this.#adapter.recallUnlisted(was, now);
    if (!was.open) this.#adapter.stopped(now);
    this.#adapter.recallStops(was);
    if (was.ended) this.#adapter.ended(now, {});
    const asked = was.asks.flatMap(({ tool, input, isHeld }) => {
      const again = this.#adapter.permissionAsked(tool, input, {}, now);
      // The hook that waited for an answer went with the companion before this one.
      return isHeld ? again : [];
    });
    this.#adapter.handedOver(was.handed);
    this.#messages.recall(was, now);
    this.#tell(asked);
  }

  #do(work: () => void | Promise<void>): void {
    this.#work = this.#work.then(() => this.#guarded(work));
  }

  async #guarded(work: () => void | Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.log('warn', `the mirror of ${this.sessionId} failed: ${String(error)}`);
    }
  }
}
