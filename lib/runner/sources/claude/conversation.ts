import { randomUUID } from 'node:crypto';
import { ClaudeAdapter, type ProcessExit } from '@/lib/adapters/claude/claude-adapter';
import { remember } from '@/lib/adapters/claude/remember';
import { CUSTOM, type TimedEvent } from '@/lib/protocol/ag-ui';
import { endsOf, foldOpenWork, type OpenWork } from '@/lib/runner/host/open-work';
import { latestOwed } from '@/lib/runner/host/owed-replies';
import type { SourceSurroundings } from '@/lib/runner/host/source';
import type { Cursor } from '@/lib/runner/outbox/statements';
import { type ClaudeMemory, type HandedMessage, inHandCursor, memoryCursor } from './claude-memory';

/** Most messages that are remembered as read. What is owed longest is waived, not answered by the way. */
const MAX_READ = 64;

/**
 * One session's conversation, over all processes that carry it: the one adapter in front of everything the agent says,
 * and what must be remembered of it.
 *
 * Ordering: events leave in the order in which the agent gave them.
 * Failure: after a kill `closePast` says how what was open ended, before anything new is said.
 */
export class Conversation {
  readonly #around: SourceSurroundings;
  readonly #adapter: ClaudeAdapter;
  readonly #now: () => number;
  #memory: ClaudeMemory;
  #inHand: readonly HandedMessage[];
  /** Messages of turns that are over: the agent has read them, and may answer them later. */
  readonly #read = new Map<string, true>();
  #isWokenByTask = false;

  constructor(around: SourceSurroundings, memory: ClaudeMemory, inHand: readonly HandedMessage[], now: () => number) {
    this.#around = around;
    this.#memory = memory;
    this.#inHand = inHand;
    this.#now = now;
    this.#adapter = new ClaudeAdapter({ sessionId: memory.sessionId, newRunId: randomUUID });
  }

  get memory(): ClaudeMemory {
    return this.#memory;
  }

  get open(): OpenWork {
    return this.#around.openWork(this.#memory.sessionId);
  }

  /** Messages in the agent's hands that no turn has answered, oldest first. */
  get inHand(): readonly HandedMessage[] {
    return this.#inHand;
  }

  /** An earlier runner was killed: says how ended what it left open. */
  closePast(): void {
    this.#memory = { ...this.#memory, pid: null };
    void this.#emit(endsOf(this.open, this.#memory.sessionId, this.#now()), memoryCursor(this.#memory));
  }

  /** One message of the SDK's stream. */
  heard(message: unknown): void {
    const events = this.#adapter.read(message, this.#now());
    this.#say(events);
    const answered = events.flatMap(({ event }) =>
      event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR'
        ? (event.metadata?.interlude?.userMessageIds ?? [])
        : [],
    );
    for (const id of answered) remember(this.#read, id, true, MAX_READ);
    if (answered.length > 0) this.letGo(answered);
  }

  /** A message is about to enter the agent's input. It stands in the log already. */
  handed(messageId: string): void {
    this.#adapter.delivered(messageId);
  }

  asked(request: object): void {
    this.#say(this.#adapter.permissionAsked(request, this.#now()));
  }

  answered(requestId: string, answer: object): void {
    this.#say(this.#adapter.permissionAnswered(requestId, answer, this.#now()));
  }

  processEnded(exit: ProcessExit): void {
    this.#memory = { ...this.#memory, pid: null };
    this.#say(this.#adapter.ended(this.#now(), exit));
  }

  notice(text: string, tone: 'info' | 'warning' | 'error' = 'info'): void {
    this.#say([{ occurredAt: this.#now(), event: { type: 'CUSTOM', name: CUSTOM.notice, value: { text, tone } } }]);
  }

  remember(change: Partial<Pick<ClaudeMemory, 'conversationId' | 'pid' | 'running'>>): void {
    this.#memory = { ...this.#memory, ...change };
    void this.#emit([], memoryCursor(this.#memory));
  }

  /** Resolves once it is stored: from then on the message is not forgotten with this process. */
  async take(message: HandedMessage): Promise<void> {
    this.#inHand = [...this.#inHand, message];
    this.#around.changed();
    await this.#emit([], this.#inHandCursor());
  }

  letGo(messageIds: readonly string[]): void {
    const kept = this.#inHand.filter(({ messageId }) => !messageIds.includes(messageId));
    if (kept.length === this.#inHand.length) return;
    this.#inHand = kept;
    void this.#emit([], this.#inHandCursor());
    this.#around.changed();
  }

  #inHandCursor() {
    return inHandCursor(this.#memory.sessionId, this.#inHand);
  }

  #say(events: readonly TimedEvent[]): void {
    if (events.length === 0) return;
    let { open } = this;
    const said = events.map((one) => {
      open = foldOpenWork(open, one);
      const { type, metadata } = one.event;
      if (type === 'RUN_STARTED') this.#isWokenByTask = metadata?.interlude?.trigger?.kind === 'task';
      return this.#withReplyTo(one, open);
    });
    void this.#emit(said);
  }

  #emit(events: readonly TimedEvent[], ...cursors: Cursor[]): Promise<void> {
    return this.#around.emit(this.#memory.sessionId, events, cursors);
  }

  /**
   * A text of the main thread answers what its turn was asked. What answers nobody that it names may answer what the agent
   * had read before, and a person still waits for; but a task's end is told to nobody in particular. What is only on its
   * way gets a turn of its own.
   */
  #withReplyTo(one: TimedEvent, open: OpenWork): TimedEvent {
    const { event } = one;
    if (event.type !== 'TEXT_MESSAGE_START' || event.role !== 'assistant' || event.subagentRunId !== undefined)
      return one;
    const asked = open.turn?.userMessageIds ?? [];
    const mayOwe = asked.length === 0 && open.turn !== null && !this.#isWokenByTask;
    const owed = mayOwe ? latestOwed(this.#around.owed(), this.#memory.sessionId, [...this.#read.keys()]) : null;
    const replyTo = owed === null ? asked : [owed];
    if (replyTo.length === 0) return one;
    const interlude = { ...event.metadata?.interlude, replyTo };
    return { ...one, event: { ...event, metadata: { ...event.metadata, interlude } } };
  }
}
