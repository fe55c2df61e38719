import type { AgUiEvent } from '../ag-ui';
import type { Sender } from '../commands';
import {
  CUSTOM,
  contentText,
  customName,
  customValue,
  idField,
  inputUserMessages,
  pickId,
  pickText,
  stringList,
} from '../event-fields';
import { textOf } from '../fields';
import { readInterlude } from '../interlude-metadata';
import { MAX_OBLIGATION_TEXT } from '../limits';
import { comparePositions, type Position } from '../position';
import type { ClearedBy, Obligation, ReplyCandidate } from '../read-models';
import { truncateText } from '../text';
import type { EventEntry, Placement } from './placement';
import { snapshotParts } from './snapshot-parts';

/*
 * Obligations. The reply to a message of a person or another agent is pending from the end of the message until
 * - a turn that names it finishes,
 * - a text that names it in `replyTo` ends, in a turn that finishes, or
 * - a person waives it.
 * A failed or interrupted turn does not answer any message. A turn triggered by a task answers only the messages it
 * names. In other turns, a text answers only messages the agent had received at the start of the turn (outside a turn:
 * of the text), because earlier text cannot answer a message the agent had not seen.
 *
 * Candidates: the last text of a finished turn may answer a message without a reply, if the agent had received the
 * message when the text started and neither text nor turn names other messages. A person can accept it until a later
 * turn provides another.
 */

/** Maximum number of unfinished messages, and of replies of one turn, tracked at a time. */
const MAX_TRACKED = 256;

export interface ObligationFold {
  /** Unfinished messages to the agent. */
  drafts: { messageId: string; from: Sender; text: string; at: number }[];
  /** Reply targets by unfinished assistant text. */
  answering: Record<string, string[]>;
  /** Messages answered by texts of the open turn, settled when the turn finishes. */
  answered: string[];
  /** The agent's last text in the open turn or outside any turn, if any. */
  lastText?: ReplyCandidate & {
    begunAt: Position;
    /** The reply targets of the text. It answers no other messages. */
    replyTo?: string[];
  };
  /** Messages queued by the server, with the position of their arrival at the agent; null before. */
  sent?: Sent[];
  /** The arrival of an unanswered message before this position is unknown, unless `sent` has it. */
  sentUnknownBefore?: Position;
}

interface Sent {
  messageId: string;
  arrivedAt: Position | null;
}

export const NO_OBLIGATIONS: ObligationFold = { drafts: [], answering: {}, answered: [] };

export interface ObligationChange {
  before: Obligation | null;
  after: Obligation;
}

/** The stored obligations an event may change: some by id, or any of the session if `settles`. */
export function obligationsTouchedBy(event: AgUiEvent): { messageIds: string[]; settles: boolean } {
  const messageIds: string[] = [];
  const id = idField(event, 'messageId');
  // The first start decides the sender, not a repeated one.
  if (/^TEXT_MESSAGE_(START|CHUNK)$/.test(event.type) && id !== null) messageIds.push(id);
  for (const part of snapshotParts(event)) if (part.fields.role === 'user') messageIds.push(part.id);
  if (event.type === 'RUN_STARTED') for (const message of inputUserMessages(event)) messageIds.push(message.id);
  const { replyTo = [], userMessageIds = [] } = readInterlude(event);
  for (const named of [...replyTo, ...userMessageIds]) messageIds.push(named);
  const about = pickId(customValue(event), 'message_id', 'messageId');
  if (event.type === 'CUSTOM' && about !== null) messageIds.push(about);
  // Only the first chunk must name its message and role.
  const isNamelessChunk = event.type === 'TEXT_MESSAGE_CHUNK' && id === null;
  return { messageIds, settles: isNamelessChunk || event.type === 'RUN_FINISHED' || event.type === 'TEXT_MESSAGE_END' };
}

/**
 * Folds a session's obligations placement by placement, so the server can yield in between. `fold` stays the same object
 * while unchanged.
 */
export class ObligationLedger {
  fold: ObligationFold;
  readonly #before: Map<string, Obligation>;
  readonly #after = new Map<string, Obligation>();
  readonly #owner: { sessionId: string; agentId: string };

  /**
   * @param known the stored obligations that the placements may change, settled ones included, because a repeated message
   *   does not open a second obligation
   */
  constructor(fold: ObligationFold, known: readonly Obligation[], owner: { sessionId: string; agentId: string }) {
    this.fold = fold;
    this.#before = new Map(known.map((obligation) => [obligation.messageId, obligation]));
    this.#owner = owner;
  }

  changes(): ObligationChange[] {
    return [...this.#after].map(([id, after]) => ({ before: this.#before.get(id) ?? null, after }));
  }

  apply(placement: Placement): void {
    const { event } = placement.entry;
    // A snapshot repeats earlier messages.
    if (readInterlude(event).ofSnapshot !== undefined) return;
    // Messages to a subagent are the agent's own.
    if (placement.turnId?.startsWith('task:') !== true) {
      if (event.type === 'CUSTOM') this.#applyCustom(placement.entry);
      else if (placement.role === 'user') this.#applyMessage(placement);
      else if (placement.entityId !== null && event.type.startsWith('TEXT_MESSAGE_')) {
        this.#trackText(placement);
        this.#applyReply(placement);
      }
      if (event.type === 'RUN_STARTED') {
        for (const { id, text } of inputUserMessages(event))
          this.#open(id, { kind: 'person', id: 'user' }, text, placement.entry);
      }
    }
    for (const turn of placement.turns) {
      if (turn.kind === 'none' || turn.state === 'open') continue;
      if (turn.state === 'finished') {
        const isWokenByTask = turn.trigger?.kind === 'task';
        const replied = isWokenByTask
          ? []
          : this.fold.answered.filter((id) => this.#wasReceivedBefore(turn.position, id));
        for (const id of turn.userMessageIds) this.#answer(id, placement.entry, turn.id, 'turn');
        for (const id of replied) this.#answer(id, placement.entry, turn.id, 'reply');
        this.#propose(turn.userMessageIds);
      }
      this.#forgetText();
      if (this.fold.answered.length > 0) this.fold = { ...this.fold, answered: [] };
      // Late events of this turn's texts don't belong to the next turn.
      if (Object.keys(this.fold.answering).length > 0) this.fold = { ...this.fold, answering: {} };
    }
  }

  #applyMessage({ entry, entityId, startPosition }: Placement): void {
    const { event } = entry;
    const id = entityId;
    if (id === null) return;
    const draft = this.fold.drafts.find((message) => message.messageId === id);
    const others = this.fold.drafts.filter((message) => message.messageId !== id);
    if (event.type === 'TEXT_MESSAGE_START') {
      const isQueued = readInterlude(event).delivery === 'queued';
      if (!isQueued) this.#recordArrival(id, entry.position);
      if (this.#find(id) !== undefined) return;
      if (isQueued) this.#recordSent({ messageId: id, arrivedAt: null }, entry.position);
      const started = { messageId: id, from: senderOf(entry), text: '', at: entry.occurredAt };
      this.fold = { ...this.fold, drafts: [...others.slice(-(MAX_TRACKED - 1)), started] };
    } else if (event.type === 'TEXT_MESSAGE_CHUNK' && draft === undefined) {
      this.#applyChunk(id, entry, startPosition === entry.position);
    } else if (/^TEXT_MESSAGE_(CONTENT|CHUNK)$/.test(event.type) && draft !== undefined) {
      const text = extendedText(draft.text, event);
      if (text !== null) this.fold = { ...this.fold, drafts: [...others, { ...draft, text }] };
    } else if (event.type === 'TEXT_MESSAGE_END' && draft !== undefined) {
      this.fold = { ...this.fold, drafts: others };
      this.#open(id, draft.from, draft.text, { ...entry, occurredAt: draft.at });
    }
  }

  /** Applies a chunk. The first one may be the whole message, so it opens the obligation; later ones extend the text. */
  #applyChunk(id: string, entry: EventEntry, isFirst: boolean): void {
    const delta = contentText(entry.event.delta);
    const known = this.#find(id);
    if (isFirst) {
      this.#recordArrival(id, entry.position);
      this.#open(id, senderOf(entry), delta, entry);
    } else if (known?.state === 'owed' && known.text.length < MAX_OBLIGATION_TEXT) {
      this.#after.set(id, { ...known, text: truncateText(known.text + delta, MAX_OBLIGATION_TEXT) });
    }
  }

  /** Keeps the text that may become a candidate at the end of its turn. */
  #trackText({ entry, entityId, turnId, role, startPosition }: Placement): void {
    const { event, position } = entry;
    const messageId = entityId as string;
    if (turnId === null || role !== 'assistant') return;
    const named = readInterlude(event).replyTo;
    const targets = named === undefined ? {} : { replyTo: stringList(named).slice(-MAX_TRACKED) };
    const isFirstChunk = event.type === 'TEXT_MESSAGE_CHUNK' && startPosition === position;
    if (event.type === 'TEXT_MESSAGE_START' || isFirstChunk) {
      const text = truncateText(isFirstChunk ? contentText(event.delta) : '', MAX_OBLIGATION_TEXT);
      this.fold = { ...this.fold, lastText: { messageId, turnId, begunAt: position, text, ...targets } };
      return;
    }
    const known = this.fold.lastText;
    if (known?.messageId !== messageId) return;
    const lastText = named === undefined ? known : { ...known, ...targets };
    if (lastText !== known) this.fold = { ...this.fold, lastText };
    if (event.type === 'TEXT_MESSAGE_END') {
      // Outside a turn there is no end to wait for, so the text itself is the reply.
      if (turnId.startsWith('none:')) {
        this.#propose([]);
        this.#forgetText();
      }
      return;
    }
    const text = extendedText(lastText.text, event);
    if (text !== null) this.fold = { ...this.fold, lastText: { ...lastText, text } };
  }

  /**
   * Proposes the last text as the reply to messages that still await a reply. @param named messages named by its turn
   */
  #propose(named: readonly string[]): void {
    const { lastText } = this.fold;
    if (lastText === undefined || lastText.text.trim() === '') return;
    const { begunAt, replyTo = [], ...text } = lastText;
    const candidate = { ...text, position: begunAt };
    for (const messageId of new Set([...this.#before.keys(), ...this.#after.keys()])) {
      const obligation = this.#find(messageId);
      if (obligation?.state !== 'owed' || !this.#wasReceivedBefore(begunAt, messageId)) continue;
      const isTarget = replyTo.length > 0 ? replyTo.includes(messageId) : named.length === 0;
      if (!isTarget) continue;
      this.#after.set(messageId, { ...obligation, candidate });
    }
  }

  #forgetText(): void {
    if (this.fold.lastText === undefined) return;
    const { lastText: _, ...fold } = this.fold;
    this.fold = fold;
  }

  /** Marks replies pending for too long as overdue, if their agent can reply. */
  setOverdue(messageIds: Iterable<string>, canReply: boolean): void {
    for (const id of messageIds) {
      const obligation = this.#find(id);
      if (obligation?.state === 'owed' && obligation.isOverdue !== canReply)
        this.#after.set(id, { ...obligation, isOverdue: canReply });
    }
  }

  #applyReply({ entry, entityId, turnId, startPosition }: Placement): void {
    const id = entityId as string;
    const named = readInterlude(entry.event).replyTo;
    if (entry.event.type === 'TEXT_MESSAGE_CHUNK') {
      if (named !== undefined) this.#reply(named, { entry, turnId, startPosition });
      return;
    }
    const before = Object.hasOwn(this.fold.answering, id) ? this.fold.answering[id] : undefined;
    const replyTo = named === undefined ? before : stringList(named);
    if (replyTo === undefined) return;
    if (entry.event.type !== 'TEXT_MESSAGE_END') {
      if (replyTo === before) return;
      const { [id]: _before, ...others } = this.fold.answering;
      this.fold = { ...this.fold, answering: newestReplies([...Object.entries(others), [id, replyTo]]) };
      return;
    }
    const { [id]: _ended, ...answering } = this.fold.answering;
    this.fold = { ...this.fold, answering };
    this.#reply(replyTo, { entry, turnId, startPosition });
  }

  #reply(
    replyTo: string[],
    { entry, turnId, startPosition }: Pick<Placement, 'entry' | 'turnId' | 'startPosition'>,
  ): void {
    if (startPosition === null || turnId === null) return;
    if (turnId.startsWith('none:')) {
      // Outside a turn there is no end to wait for, so the text itself is the reply.
      for (const named of replyTo)
        if (this.#wasReceivedBefore(startPosition, named)) this.#answer(named, entry, turnId, 'reply');
      return;
    }
    const others = this.fold.answered.filter((id) => !replyTo.includes(id));
    this.fold = { ...this.fold, answered: [...others, ...replyTo].slice(-MAX_TRACKED) };
  }

  #applyCustom(entry: EventEntry): void {
    const value = customValue(entry.event);
    const id = pickId(value, 'message_id', 'messageId');
    const name = customName(entry.event);
    if (id === null) return;
    if (name === CUSTOM.messageDelivery && value.delivery === 'delivered') this.#recordArrival(id, entry.position);
    const reason = pickText(value, 'reason');
    const settledAt = entry.receivedAt;
    if (name === CUSTOM.obligationWaived) this.#settle(id, { state: 'waived', settledAt, reason, clearedBy: 'waived' });
    // An undelivered message needs no reply.
    if (name === CUSTOM.messageDelivery && value.delivery === 'failed') {
      this.#settle(id, { state: 'waived', settledAt, reason, clearedBy: 'undelivered' });
    }
    const turnId = pickText(value, 'turn_id');
    if (name === CUSTOM.obligationAccepted && turnId !== null) this.#answer(id, entry, turnId, 'accepted');
  }

  /** True if the agent received the message before a position, as reported by its runner. */
  #wasReceivedBefore(position: Position, messageId: string): boolean {
    const obligation = this.#find(messageId);
    const sent = this.fold.sent?.find((one) => one.messageId === messageId);
    const since = sent !== undefined ? sent.arrivedAt : this.#mayBeEvicted(obligation) ? null : obligation?.position;
    return typeof since === 'string' && comparePositions(since, position) < 0;
  }

  /** True if the message may have been evicted from `sent`. It then counts as received from its reported arrival. */
  #mayBeEvicted(obligation: Obligation | undefined): boolean {
    const { sentUnknownBefore } = this.fold;
    if (obligation === undefined || sentUnknownBefore === undefined) return false;
    return comparePositions(obligation.position, sentUnknownBefore) < 0;
  }

  /** Records the arrival of a queued message at the agent. */
  #recordArrival(messageId: string, position: Position): void {
    const sent = this.fold.sent?.find((one) => one.messageId === messageId);
    const obligation = sent === undefined ? this.#find(messageId) : undefined;
    const isEvicted = obligation?.state === 'owed' && this.#mayBeEvicted(obligation);
    if (sent?.arrivedAt === null || isEvicted) this.#recordSent({ messageId, arrivedAt: position }, position);
  }

  #recordSent(message: Sent, at: Position): void {
    const sent = (this.fold.sent ?? []).filter((one) => one.messageId !== message.messageId);
    sent.push(message);
    this.fold = { ...this.fold, sent };
    if (sent.length <= MAX_TRACKED) return;
    // Evicts an undelivered message first, because its arrival adds it again.
    const evicted = sent.slice(0, -1).findIndex((one) => one.arrivedAt === null);
    sent.splice(Math.max(0, evicted), 1);
    this.fold = { ...this.fold, sentUnknownBefore: at };
  }

  #open(messageId: string, from: Sender, text: string, { occurredAt, receivedAt, position }: EventEntry): void {
    if (this.#find(messageId) !== undefined) return;
    this.#after.set(messageId, {
      messageId,
      ...this.#owner,
      from,
      text: truncateText(text, MAX_OBLIGATION_TEXT),
      sentAt: occurredAt,
      owedSince: receivedAt,
      isOverdue: false,
      state: 'owed',
      candidate: null,
      settledAt: null,
      clearedBy: null,
      answeredInTurnId: null,
      reason: null,
      position,
    });
  }

  #answer(messageId: string, { receivedAt }: EventEntry, turnId: string, clearedBy: ClearedBy): void {
    this.#settle(messageId, { state: 'answered', settledAt: receivedAt, answeredInTurnId: turnId, clearedBy });
  }

  #settle(messageId: string, end: Partial<Obligation>): void {
    const obligation = this.#find(messageId);
    if (obligation?.state !== 'owed') return;
    this.#after.set(messageId, { ...obligation, ...end });
    const sent = this.fold.sent?.filter((one) => one.messageId !== messageId);
    if (sent?.length !== this.fold.sent?.length) this.fold = { ...this.fold, sent };
  }

  #find(messageId: string): Obligation | undefined {
    return this.#after.get(messageId) ?? this.#before.get(messageId);
  }
}

/** Extends a text by an event; null if the text is at its maximum length. */
function extendedText(text: string, event: AgUiEvent): string | null {
  const isWhole = readInterlude(event).whole === true;
  if (text.length >= MAX_OBLIGATION_TEXT && !isWhole) return null;
  return truncateText((isWhole ? '' : text) + contentText(event.delta), MAX_OBLIGATION_TEXT);
}

/** The newest unfinished replies with at most MAX_TRACKED targets in total. */
function newestReplies(answering: [string, string[]][]): ObligationFold['answering'] {
  const newest: [string, string[]][] = [];
  let room = MAX_TRACKED;
  for (const [id, replyTo] of answering.slice(-MAX_TRACKED).reverse()) {
    if (room <= 0) break;
    newest.unshift([id, replyTo.slice(-room)]);
    room -= replyTo.length;
  }
  return Object.fromEntries(newest);
}

function senderOf({ event }: EventEntry): Sender {
  const { from } = readInterlude(event);
  if (from?.kind === 'agent' || from?.kind === 'person') return { kind: from.kind, id: String(from.id) };
  return { kind: 'person', id: textOf(event.name) ?? 'user' };
}
