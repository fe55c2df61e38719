import { basename, dirname, join } from 'node:path';
import type { AdapterOutput } from '@/lib/adapters/claude/claude-adapter';
import { fieldsOf, textOf } from '@/lib/adapters/claude/fields';
import type { HeardStop, HookClaim, HookMoment } from '@/lib/adapters/claude/heard-stops';
import { textIn } from '@/lib/adapters/claude/last-words';
import { isStopFeedback } from '@/lib/adapters/claude/stop-feedback';
import { TranscriptAdapter } from '@/lib/adapters/claude/transcript';
import { CUSTOM } from '@/lib/protocol/ag-ui';
import { lineKey } from './line-key';
import { type MirrorState, newMirrorState } from './mirror-state';
import { Offers } from './offers';
import type { StopDecision } from './stop-decision';
import { readOn, type TailPlace } from './tail-file';
import { birthOf, type TerminalProcess } from './terminal-process';

/**
 * One session of an interactive Claude Code, mirrored from its transcript.
 *
 * Ordering: events come in the order of the transcript's lines; a subagent's file is read behind the session's own.
 * Failure: the place in the files is handed over together with the events up to it. A mirror that comes after a kill
 * reads the lines before it again, to know what is open, and tells only what comes after. A transcript that was cut
 * off, replaced or rewritten is read from its beginning, and lines that were read before are left out.
 */
export interface SessionMirrorOptions {
  sessionId: string;
  file: string;
  /** As stored by the mirror before this one. */
  state: MirrorState | null;
  emit: (outputs: AdapterOutput[], state: MirrorState) => void;
  onHandedOver: (messageIds: string[]) => void;
  onTurnEnded: () => void;
  log: (level: 'debug' | 'info' | 'warn', message: string) => void;
  now?: () => number;
}

/** How long the transcript must be still after the last hook of a turn, before the turn is held to be over. */
const STILL_MS = 1_500;
/**
 * How long a turn is held for the text that its stop hook brought and the transcript has not: past it the hook's word is
 * taken. Shorter, once the next prompt was heard of.
 */
const LAST_LINE_MS = { most: 5_000, prompted: 3_000 };
/**
 * How long a turn is held whose lines are behind those of a hook of a later one: the transcript has them, and brings them
 * before that. And how long such a hook waits for its turn.
 */
const BEHIND_MS = 90_000;
/** How long a session that has ended may still write. */
const LAST_WORDS_MS = { still: 500, most: 3_000 };
/** What a session writes this long after it has ended is nobody's any more. */
const LATE_MS = 10_000;
/**
 * For this long `busy` without an open turn, or nothing behind a turn's last word: the hook that would have said idle
 * was killed, or nobody was there to hear it. Ours takes 2 s at most.
 */
const STUCK_MS = 5_000;
/** How long what a stop hook answered may take to reach the transcript: other people's hooks run beside it. */
const HELD_MS = 70_000;

export type SelfReport = 'starting' | 'busy' | 'idle' | 'compacting';

export class SessionMirror {
  readonly #options: SessionMirrorOptions;
  readonly #now: () => number;
  readonly #adapter: TranscriptAdapter;
  #state: MirrorState;
  /** Keys of lines that were read; a transcript names each line, and bookkeeping that has no name is never told. */
  readonly #seen = new Set<string>();
  #selfReport: SelfReport = 'starting';
  #selfReportAt: number;
  /** When the hook ran that told it. */
  #selfReportOf = 0;
  #lastLineAt = 0;
  #ending: { reason: string; at: number; ranAt: number } | null = null;
  #began: number;
  #ended: { reason: string; at: number } | null = null;
  readonly #offers = new Offers();
  /** Answered by a turn that finished: owed no more, whatever the snapshot still says. */
  readonly #answered = new Set<string>();
  #work: Promise<void>;

  constructor(options: SessionMirrorOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#adapter = new TranscriptAdapter({ sessionId: options.sessionId });
    this.#state = structuredClone(options.state ?? newMirrorState(options.file));
    this.#state.file = options.file;
    this.#selfReportAt = this.#now();
    this.#began = this.#state.began;
    const at = this.#now();
    if (this.#state.ending !== null) this.#ending = { reason: this.#state.ending, at, ranAt: at };
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
  get process(): TerminalProcess | null {
    return this.#state.process;
  }

  get selfReport(): SelfReport {
    return this.#selfReport;
  }

  get openRunId(): string | null {
    return this.#adapter.openRunId;
  }

  get tasks(): { id: string; description: string }[] {
    return this.#adapter.runningTasks;
  }

  get requests(): number {
    return this.#state.asks.length;
  }

  /** A turn goes on, so its end will come and with it the stop hook. */
  get isBusy(): boolean {
    return !this.#state.ended && (this.#adapter.openRunId !== null || this.#selfReport === 'busy');
  }

  /** Whether the message was typed in the terminal: it is answered there. */
  wasTyped(messageId: string): boolean {
    return this.#seen.has(messageId);
  }

  /** Messages that are before the agent, are about to be, or were and have been answered. */
  isInHand(messageId: string): boolean {
    const { handed } = this.#state;
    return this.#offers.has(messageId) || handed.includes(messageId) || this.#answered.has(messageId);
  }

  /** A hook of this session ran. */
  heard(pid: number | null, file: string | null): void {
    if (pid !== null && pid !== this.#state.process?.pid) this.#state.process = { pid, birth: null };
    if (pid !== null) this.#do(() => this.#isOf(pid));
    if (file !== null && file !== this.#state.file) {
      this.#options.log('info', `the transcript of ${this.sessionId} is ${file} now`);
      this.#state.file = file;
    }
  }

  /** Looked up while the hook waits, so it is there. The same pid may be another process than it was. */
  async #isOf(pid: number): Promise<void> {
    const birth = await birthOf(pid);
    const { process } = this.#state;
    if (process?.pid !== pid || process.birth === birth) return;
    this.#state.process = { pid, birth };
    this.#tell([], true);
  }

  /** Begun, or resumed. A hook that is heard behind later ones changes nothing they said. */
  began(claim?: HookClaim): void {
    const { at } = this.#momentOf(claim);
    if (this.#ending !== null && this.#ending.ranAt > at) return;
    this.#ending = null;
    this.#ended = null;
    this.#began = Math.max(this.#began, at);
    this.#do(() => {
      this.#adapter.stops.clearBefore(at);
      this.#state.ending = null;
      this.#state.ended = false;
      this.#state.began = this.#began;
    });
    this.#reports('idle', at);
  }

  report(state: SelfReport, claim?: HookClaim): void {
    this.#reports(state, this.#momentOf(claim).at);
  }

  /** Somebody asks for a turn. */
  prompted(claim?: HookClaim): void {
    const [moment, heardAt] = [this.#momentOf(claim), this.#now()];
    this.#reports('busy', moment.at);
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
   */
  stopped(failure: string | null = null, text: string | null = null, claim?: HookClaim): void {
    const [moment, heardAt] = [this.#momentOf(claim), this.#now()];
    this.#reports('idle', moment.at);
    this.#do(() => {
      this.#adapter.announced({ ...moment, heardAt, text, failure });
      this.#tell([], true);
    });
  }

  /** What is told later, of what was before, does not change what the agent does now. */
  #reports(state: SelfReport, at: number): void {
    if (at < this.#selfReportOf) return;
    this.#selfReportOf = at;
    this.#selfReport = state;
    this.#selfReportAt = this.#now();
  }

  /** A hook that does not say when it ran ran when it is heard. */
  #momentOf({ at, promptId }: HookClaim = { at: null, promptId: null }): HookMoment {
    const now = this.#now();
    return { at: Math.min(at ?? now, now), isClocked: at !== null, promptId };
  }

  /** The stop hook holds the agent with these messages; the transcript will say whether that reached it. */
  offer({ messageIds, reason }: Pick<StopDecision, 'messageIds' | 'reason'>, claim?: HookClaim): void {
    const moment = this.#momentOf(claim);
    this.#reports('busy', moment.at);
    this.#offers.put({ messageIds, reason, moment });
  }

  asked(tool: string, input: unknown, about: object): void {
    this.#do(() => {
      this.#state.asks.push({ tool, input });
      this.#tell(this.#adapter.permissionAsked(tool, input, fieldsOf(about), this.#now()));
    });
  }

  end(reason: string, claim?: HookClaim): void {
    const { at } = this.#momentOf(claim);
    if (this.#ending !== null || at < this.#began) return;
    this.#ending = { reason, at: this.#now(), ranAt: at };
    this.#do(() => {
      this.#state.ending = reason;
      this.#tell([], true);
    });
  }

  /** Reads on, and concludes what no line says. Never rejects. */
  step(): Promise<void> {
    this.#do(() => this.#step());
    return this.#work;
  }

  async #step(): Promise<void> {
    while (await this.#readOn()) {
      // more waits
    }
    const now = this.#now();
    // A terminal that is left right behind its turn: the stop hook's word stands, the turn was not broken off.
    const isOver = this.#ending !== null && this.#hasSaidAll(this.#ending.at, now);
    const { own, ahead } = this.#adapter.stops;
    if (own !== null && this.#isOver(own, now, isOver)) {
      this.#tell(own.failure === null ? this.#adapter.stopped(now) : this.#adapter.failed(own.failure, now), true);
    } else if (own === null && ahead !== null && this.#isLost(ahead, now)) {
      if (this.#adapter.openRunId === null) this.#adapter.stops.drop(ahead);
      this.#tell(this.#adapter.stopped(now), true);
    }
    const stillFor = now - Math.max(this.#selfReportAt, this.#lastLineAt);
    if (this.#adapter.hasSaidLastWord && stillFor >= (this.#offers.areOpen ? HELD_MS : STUCK_MS)) {
      this.#options.log('info', `session ${this.sessionId} has said its last word, and its stop hook was not heard`);
      this.#reports('idle', this.#selfReportOf);
      this.#tell(this.#adapter.stopped(now));
    }
    const stuck = this.#selfReport === 'busy' && this.#adapter.openRunId === null;
    if (stuck && stillFor >= STUCK_MS) {
      this.#options.log('warn', `session ${this.sessionId} said busy and does nothing: it is held to be idle`);
      this.#reports('idle', this.#selfReportOf);
      this.#offers.drop();
    }
    if (this.#ending !== null && isOver) {
      const { reason } = this.#ending;
      this.#ending = null;
      this.#state.ending = null;
      if (this.#state.ended) return;
      this.#state.ended = true;
      this.#ended = { reason, at: now };
      this.#offers.drop();
      this.#tell(this.#adapter.ended(now, { reason }), true);
    }
    // Its last words came behind its end: they are told, and the session has ended all the same.
    if (this.#state.ended && this.#adapter.openRunId !== null) {
      this.#tell(this.#adapter.ended(now, { reason: this.#ended?.reason ?? 'the terminal session was left' }), true);
    }
  }

  /** The stop hook's word is not in the transcript; where it brought none, nothing there ends the turn. */
  get #lacksLastWords(): boolean {
    const { own } = this.#adapter.stops;
    const saidNone = own !== null && own.text === null && own.failure === null;
    return this.#adapter.lacksLastWords || (saidNone && !this.#adapter.hasSaidLastWord);
  }

  /** Whether the turn whose stop hook ran has said all it had to say, or has had its time. */
  #isOver({ heardAt, promptedAt }: HeardStop, now: number, isLeft: boolean): boolean {
    if (!this.#lacksLastWords) return isLeft || now - Math.max(this.#lastLineAt, heardAt) >= STILL_MS;
    if (promptedAt !== null && now - Math.max(promptedAt, heardAt) >= LAST_LINE_MS.prompted) return true;
    const isLeftLong = this.#ending !== null && now - this.#ending.at >= LAST_WORDS_MS.most;
    return isLeftLong || now - heardAt >= LAST_LINE_MS.most;
  }

  /** Whether the transcript would have come to the hook's turn by now. What the hook itself does not say is not sure. */
  #isLost({ heardAt, isClocked, promptId }: HeardStop, now: number): boolean {
    return now - heardAt >= (isClocked || promptId !== null ? BEHIND_MS : LAST_LINE_MS.most);
  }

  #hasSaidAll(since: number, now: number): boolean {
    const stillFor = now - Math.max(this.#lastLineAt, since);
    const hasSaid = stillFor >= LAST_WORDS_MS.still && !this.#lacksLastWords;
    return hasSaid || now - since >= LAST_WORDS_MS.most;
  }

  /** @returns whether something was read */
  async #readOn(): Promise<boolean> {
    const read = await readOn(this.#state.file, this.#state.main);
    if (read !== null) {
      if (read.restarted) this.#options.log('info', `the transcript of ${this.sessionId} begins anew`);
      this.#state.main = read.place;
      this.#lines(read.lines.map(({ text }) => text));
    }
    let more = read?.more === true;
    for (const id of this.#adapter.subagents) {
      const its = await readOn(this.#subagentFile(id), this.#state.subagents[id] ?? null);
      if (its === null || its.place.offset === this.#state.subagents[id]?.offset) continue;
      this.#state.subagents[id] = its.place;
      this.#lines(its.lines.map(({ text }) => text));
      more ||= its.more;
    }
    return more;
  }

  #lines(lines: string[]): void {
    if (lines.length === 0) return;
    this.#lastLineAt = this.#now();
    this.#tell(
      lines.flatMap((text) => this.#line(text)),
      true,
    );
  }

  #line(text: string): AdapterOutput[] {
    if (text.trim() === '') return [];
    let line: unknown;
    try {
      line = JSON.parse(text);
    } catch {
      this.#options.log('warn', `a line of ${this.#state.file} is not JSON and is left out`);
      return [];
    }
    const fields = fieldsOf(line);
    const key = lineKey(fields, text);
    if (this.#seen.has(key)) return [];
    this.#seen.add(key);
    // The id of what was typed while a turn ran is that of its place in the queue.
    const source = textOf(fieldsOf(fields.attachment).source_uuid);
    if (source !== null) this.#seen.add(source);
    this.#state.last = key;
    if (isStopFeedback(fields)) this.#handOver(textIn(fields));
    return this.#adapter.read(line, key, this.#now());
  }

  #handOver(feedback: string): void {
    const ids = this.#offers.take(feedback);
    if (ids.length === 0) return;
    this.#state.handed.push(...ids);
    this.#adapter.handedOver(ids);
    this.#options.onHandedOver(ids);
  }

  #tell(outputs: AdapterOutput[], moved = false): void {
    for (const { event } of outputs) {
      const value = fieldsOf(event.value);
      if (event.name === CUSTOM.requestResolved) this.#state.asks.shift();
      if (event.name === CUSTOM.requestOpened) this.#options.log('debug', `the terminal asks: ${textOf(value.title)}`);
      if (event.type !== 'RUN_FINISHED' && event.type !== 'RUN_ERROR') continue;
      const isAnswer = event.type === 'RUN_FINISHED' && fieldsOf(event.outcome).type === 'success';
      if (isAnswer) for (const id of this.#state.handed) this.#answered.add(id);
      this.#state.handed = [];
      this.#state.asks = [];
      this.#offers.drop((moment) => !this.#adapter.stops.isAhead(moment));
      this.#options.onTurnEnded();
    }
    this.#state.open = this.#adapter.openRunId !== null;
    this.#state.closed = this.#adapter.closed;
    const { stops, unheard, prompt } = this.#adapter.stops.state;
    this.#state.prompt = prompt;
    this.#state.stops = [...stops];
    this.#state.unheard = unheard.map((said) => [...said]);
    if (outputs.length > 0 || moved) this.#options.emit(outputs, structuredClone(this.#state));
  }

  /** Brings the adapter where the mirror before this one stood; what that gives has been told. */
  async #recall(was: MirrorState): Promise<void> {
    const now = this.#now();
    this.#state.main = await this.#reread(was.file, was.main, was.last);
    for (const [id, place] of Object.entries(was.subagents)) {
      const again = await this.#reread(this.#subagentFile(id), place, was.last);
      if (again !== null) this.#state.subagents[id] = again;
    }
    if (!was.open) this.#adapter.stopped(now);
    this.#adapter.recallStops(was);
    if (was.ended) this.#adapter.ended(now, {});
    for (const { tool, input } of was.asks) this.#adapter.permissionAsked(tool, input, {}, now);
    this.#adapter.handedOver(was.handed);
  }

  /** @returns up to where the file has been told */
  async #reread(file: string, place: TailPlace | null, last: string | null): Promise<TailPlace | null> {
    if (place === null) return null;
    let read = await readOn(file, null, place.offset);
    if (read === null) return place;
    const isSame = read.place.ino === place.ino;
    // Another file stands there: what was told ends at the line that was told last, if it is in it.
    if (!isSame && !(await this.#holds(file, last))) return null;
    for (;;) {
      for (const { text, offset } of read.lines) {
        this.#line(text);
        const behind = offset + Buffer.byteLength(text) + 1;
        if (!isSame && this.#state.last === last) return { ino: read.place.ino, offset: behind };
      }
      if (!read.more) return isSame ? place : read.place;
      const next = await readOn(file, read.place, isSame ? place.offset : undefined);
      if (next === null || next.restarted) return read.place;
      read = next;
    }
  }

  async #holds(file: string, last: string | null): Promise<boolean> {
    if (last === null) return false;
    for (let read = await readOn(file, null); read !== null; read = await readOn(file, read.place)) {
      if (read.lines.some(({ text }) => keyOf(text) === last)) return true;
      if (!read.more) return false;
    }
    return false;
  }

  #subagentFile(id: string): string {
    const { file } = this.#state;
    return join(dirname(file), basename(file, '.jsonl'), 'subagents', `agent-${id.replace(/[^\w-]/g, '_')}.jsonl`);
  }

  #do(work: () => void | Promise<void>): void {
    this.#work = this.#work.then(() => this.#guarded(work));
  }

  async #guarded(work: () => void | Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.log('warn', `the mirror of ${this.sessionId} stumbled: ${String(error)}`);
    }
  }
}

function keyOf(text: string): string {
  try {
    return lineKey(JSON.parse(text), text);
  } catch {
    return '';
  }
}
