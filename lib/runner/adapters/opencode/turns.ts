import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import type { SessionWriter, TurnCause, TurnEnd } from '../writer/session-writer';

const MAX_REMEMBERED = 2_000;

/** A message of OpenCode's, to the agent or of the agent. */
export interface Message {
  /** The session it stands in. */
  session: string;
  role: 'user' | 'assistant';
  /** The model's call has ended. */
  isDone: boolean;
  /** Calls in it are answered by another message of the same turn, whatever `finish` says. */
  usesTools: boolean;
  /** A person denied one of its calls without a message: the agent stops there. */
  isRejected: boolean;
  /** Its turn has ended: later events about the message are no news. */
  isOver: boolean;
  /** Its turn was closed before it had ended: it goes on with it, if nothing else has begun. */
  isLeft: boolean;
}

/** The sender of a message to the agent; `own`: OpenCode prompts itself to go on. */
export type Asked = { kind: 'person'; ids: string[] } | { kind: 'task'; taskIds: string[] } | { kind: 'own' };

interface OpenTurn {
  parentId: string;
  /** What people had said before it began. */
  taken: readonly string[];
  messages: Set<Message>;
  newest: Message | null;
  /** What the server said of the session since. */
  error: Fields | null;
}

/**
 * The turns of one root session. A turn is all messages of the agent that answer one message to it (`parentID`). It ends
 * with the message that says so, or with an error. That the session is idle means its end only where its newest message
 * has ended: after an abort, and an error, the server says so too early.
 */
export class Turns {
  readonly #writer: SessionWriter;
  readonly #newRunId: () => string;
  readonly #asked = new Map<string, Asked>();
  /** Messages of people that no turn has taken up, oldest first. */
  readonly #unanswered = new Map<string, string[]>();
  /** Messages that a turn has begun with: another turn for one of them has an id of its own. */
  readonly #begun = new Map<string, true>();
  #open: OpenTurn | null = null;

  constructor(writer: SessionWriter, newRunId: () => string) {
    this.#writer = writer;
    this.#newRunId = newRunId;
  }

  askedBy(messageId: string): Asked | undefined {
    return this.#asked.get(messageId);
  }

  asks(messageId: string, asked: Asked): void {
    remember(this.#asked, messageId, asked, MAX_REMEMBERED);
    if (asked.kind !== 'person' || this.#begun.has(messageId)) return;
    remember(this.#unanswered, messageId, asked.ids, MAX_REMEMBERED);
  }

  /** Whether a message of the dashboard is in the conversation. */
  has(messageId: string): boolean {
    for (const asked of this.#asked.values()) if (asked.kind === 'person' && asked.ids.includes(messageId)) return true;
    return false;
  }

  /** Something is under way, so that idleness would mean its end. */
  get isAtWork(): boolean {
    return this.#open !== null || this.#unanswered.size > 0;
  }

  /**
   * @param info as the message is by now
   * @param isFirst the event is the first about the message. OpenCode stores events late: the first may already say that
   *   the message has ended, before its parts arrive. The next event repeats the end, or the session goes idle.
   */
  goesOn(message: Message, parentId: string, info: Fields, isFirst: boolean): void {
    const isOwn = this.#asked.get(parentId)?.kind === 'own';
    if (message.isLeft && this.#open !== null && this.#open.parentId !== parentId) return;
    // A prompt of OpenCode's own, as after compacting, belongs to the open turn.
    if (this.#open === null || (this.#open.parentId !== parentId && !isOwn)) this.#begin(parentId);
    if (this.#open === null) return;
    if (!this.#open.messages.has(message)) this.#open.newest = message;
    this.#open.messages.add(message);
    message.isDone = isDone(info);
    if (!message.isDone || this.#open.newest !== message) return;
    const error = fieldsOf(info.error);
    if (isFirst) {
      if (textOf(error.name) !== null) this.#open.error = error;
      return;
    }
    const isLast = info.finish !== 'tool-calls' && !message.usesTools && info.summary !== true;
    if (textOf(error.name) !== null) this.#finish(endOf(error));
    else if (isLast && textOf(info.finish) !== null) this.#finish({ kind: 'success' });
  }

  /** An error of the session. The newest message of the turn says the same, if there is one. */
  failed(error: Fields): void {
    if (this.#open !== null) {
      this.#open.error = error;
      return;
    }
    if (error.name === 'MessageAbortedError') return;
    const waiting = [...this.#unanswered.keys()].at(-1);
    if (waiting === undefined) {
      this.#writer.notice(`OpenCode failed: ${messageOf(error)}`, 'error');
      return;
    }
    this.#begin(waiting);
    this.#finish(endOf(error));
  }

  /** The session is idle. @returns whether that is the end of the turn */
  idle(): boolean {
    const { newest = null, error = null } = this.#open ?? {};
    if (newest?.isDone !== true) return false;
    if (error !== null) this.#finish(endOf(error));
    else if (newest.isRejected) this.#finish({ kind: 'cancelled' });
    else this.#finish({ kind: 'success' }, true);
    return true;
  }

  /** The session's process has ended: its open turn gets no further events. */
  atRest(): void {
    const gone = 'OpenCode ended in the middle of this turn.';
    if (!this.idle()) this.#finish({ kind: 'failed', message: gone, code: 'agent_exited' });
    for (;;) {
      const waiting = [...this.#unanswered.keys()].at(-1);
      if (waiting === undefined) return;
      this.#begin(waiting);
      const message = 'OpenCode ended before it took this up; send it again.';
      this.#finish({ kind: 'failed', message, code: 'agent_exited' });
    }
  }

  /** @param runId the run that an earlier process left open, null for none */
  toldBefore(runId: string | null): void {
    if (this.#open === null || this.#writer.turn?.runId === runId) return;
    const { parentId, taken } = this.#open;
    this.#writer.finish({ kind: 'success' });
    // Closed before its time: the rest becomes another turn.
    if (runId === null) this.#open = null;
    else this.#writer.begin(this.#causeOf(parentId, taken), runId);
    this.#writer.answers(taken);
  }

  /** Whatever was under way has been closed. */
  over(): void {
    const { messages } = this.#open ?? {};
    this.#open = null;
    for (const message of messages ?? []) {
      message.isOver = message.isDone;
      message.isLeft = !message.isDone;
    }
  }

  #begin(parentId: string): void {
    if (this.#open !== null) this.over();
    const taken = this.#takeUp(parentId);
    const isAgain = this.#begun.has(parentId);
    remember(this.#begun, parentId, true, MAX_REMEMBERED);
    this.#writer.begin(this.#causeOf(parentId, taken), isAgain ? this.#newRunId() : `turn_${parentId}`);
    this.#writer.answers(taken);
    this.#open = { parentId, taken, messages: new Set(), newest: null, error: null };
  }

  /** The message that a turn answers, and what people had sent before it: the agent has read that too. */
  #takeUp(parentId: string): string[] {
    const waiting = [...this.#unanswered.keys()];
    const isTask = this.#asked.get(parentId)?.kind === 'task';
    const taken = isTask ? waiting : waiting.slice(0, waiting.indexOf(parentId) + 1);
    return taken.flatMap((messageId) => {
      const ids = this.#unanswered.get(messageId) ?? [];
      this.#unanswered.delete(messageId);
      return ids;
    });
  }

  #causeOf(parentId: string, taken: readonly string[]): TurnCause {
    const asked = this.#asked.get(parentId);
    if (asked?.kind === 'task') return { kind: 'between-run', trigger: { kind: 'task', taskIds: asked.taskIds } };
    if (asked?.kind === 'own') return { kind: 'user', userMessageIds: [] };
    return { kind: 'user', userMessageIds: taken.length > 0 ? taken : (asked?.ids ?? [parentId]) };
  }

  #finish(end: TurnEnd, isInferred = false): void {
    this.over();
    this.#writer.finish(end, { isInferred });
  }
}

export function isDone({ time, error }: Fields): boolean {
  return typeof fieldsOf(time).completed === 'number' || textOf(fieldsOf(error).name) !== null;
}

function endOf(error: Fields): TurnEnd {
  if (error.name === 'MessageAbortedError') return { kind: 'cancelled' };
  return { kind: 'failed', message: messageOf(error), code: truncateText(textOf(error.name) ?? 'error', 100) };
}

function messageOf(error: Fields): string {
  const text = textOf(fieldsOf(error.data).message) ?? textOf(error.message) ?? textOf(error.name) ?? 'no reason given';
  return truncateText(text, 4_000);
}
