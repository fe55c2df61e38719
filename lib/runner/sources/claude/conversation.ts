import { randomUUID } from 'node:crypto';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { endsOf, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { ClaudeAdapter, type ProcessExit } from '../../adapters/claude/claude-adapter';
import { type HandedMessage, withFilesHere } from '../../host/messages-in-hand';
import { answeredIn, ReplyMarks } from '../../host/reply-marks';
import type { SourceSurroundings } from '../../host/source';
import type { Cursor } from '../../outbox/statements';
import { type ClaudeMemory, inHandCursor, memoryCursor } from './claude-memory';

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
  readonly #marks: ReplyMarks;
  #memory: ClaudeMemory;
  #inHand: readonly HandedMessage[];

  constructor(around: SourceSurroundings, memory: ClaudeMemory, inHand: readonly HandedMessage[], now: () => number) {
    this.#around = around;
    this.#memory = memory;
    this.#inHand = inHand;
    this.#now = now;
    this.#marks = new ReplyMarks(memory.sessionId, () => around.owed());
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

  /** Finds what an earlier runner had on its disk. */
  async findFiles(): Promise<void> {
    this.#inHand = await withFilesHere(this.#around, this.#memory.sessionId, this.#inHand);
  }

  /** One message of the SDK's stream. */
  heard(message: unknown): void {
    const events = this.#adapter.read(message, this.#now());
    this.#say(events);
    const answered = answeredIn(events);
    this.#marks.answered(answered);
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
    if (events.length > 0) void this.#emit(this.#marks.mark(events, this.open));
  }

  #emit(events: readonly TimedEvent[], ...cursors: Cursor[]): Promise<void> {
    return this.#around.emit(this.#memory.sessionId, events, cursors);
  }
}
