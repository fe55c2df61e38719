import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import type { SessionWriter, TurnCause, TurnEnd } from '../writer/session-writer';

const MAX_REMEMBERED = 2_000;

export interface Message {
  session: string;
  role: 'user' | 'assistant';
  /** True if the model's response has ended. */
  isDone: boolean;
  /** True if another message of the turn follows its tool calls, whatever the value of `finish`. */
  usesTools: boolean;
  /** True if a person rejected one of its calls without a message, so that the agent stops. */
  isRejected: boolean;
  /** True if its turn has ended, so that later events are repeats. */
  isOver: boolean;
  /** True if its turn was closed early. The turn continues unless another one has started. */
  wasClosedEarly: boolean;
}

/** Author of a message to the agent; `own`: OpenCode's own continuation prompt. */
type MessageAuthor = { kind: 'person'; ids: string[] } | { kind: 'task'; taskIds: string[] } | { kind: 'own' };

interface OpenTurn {
  parentId: string;
  /** Messages that people sent before the turn and that it answers. */
  answered: readonly string[];
  messages: Set<Message>;
  newest: Message | null;
  /** Session error during the turn. */
  error: Fields | null;
}

/**
 * The turns of one root session. A turn is all agent messages with the same `parentID`. It ends with the message that
 * finishes it, or with an error. An idle session ends it only if the newest message has ended: after an abort or error
 * the server reports idle too early.
 */
export class Turns {
  readonly #writer: SessionWriter;
  readonly #newRunId: () => string;
  readonly #authors = new Map<string, MessageAuthor>();
  /** People's messages without a turn, oldest first. */
  readonly #unanswered = new Map<string, string[]>();
  /** Messages that opened a turn: another turn for one gets a new run id. */
  readonly #opened = new Map<string, true>();
  #open: OpenTurn | null = null;

  constructor(writer: SessionWriter, newRunId: () => string) {
    this.#writer = writer;
    this.#newRunId = newRunId;
  }

  authorOf(messageId: string): MessageAuthor | undefined {
    return this.#authors.get(messageId);
  }

  promptRead(messageId: string, author: MessageAuthor): void {
    setBounded(this.#authors, messageId, author, MAX_REMEMBERED);
    if (author.kind !== 'person' || this.#opened.has(messageId)) return;
    setBounded(this.#unanswered, messageId, author.ids, MAX_REMEMBERED);
  }

  /** True if the conversation holds this dashboard message. */
  has(messageId: string): boolean {
    for (const author of this.#authors.values())
      if (author.kind === 'person' && author.ids.includes(messageId)) return true;
    return false;
  }

  /** True while there is open work that an idle status would end. */
  get hasOpenWork(): boolean {
    return this.#open !== null || this.#unanswered.size > 0;
  }

  /**
   * @param info current state of the message
   * @param isFirst true for the first event of the message. OpenCode stores events late: the message may already have
   *   ended before its parts arrive. The next event repeats the end, or the session goes idle.
   */
  agentMessage(message: Message, parentId: string, info: Fields, isFirst: boolean): void {
    const isOwn = this.#authors.get(parentId)?.kind === 'own';
    if (message.wasClosedEarly && this.#open !== null && this.#open.parentId !== parentId) return;
    // OpenCode's own prompts, such as after compaction, belong to the open turn.
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

  /** Records a session error. The turn's newest message, if there is one, repeats the error. */
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

  /** The session is idle. @returns true if that ended the turn */
  idle(): boolean {
    const { newest = null, error = null } = this.#open ?? {};
    if (newest?.isDone !== true) return false;
    if (error !== null) this.#finish(endOf(error));
    else if (newest.isRejected) this.#finish({ kind: 'cancelled' });
    else this.#finish({ kind: 'success' }, true);
    return true;
  }

  /** Handles the end of the server process: the open turn gets no further events. */
  processEnded(): void {
    const gone = 'OpenCode ended during this turn.';
    if (!this.idle()) this.#finish({ kind: 'failed', message: gone, code: 'agent_exited' });
    for (;;) {
      const waiting = [...this.#unanswered.keys()].at(-1);
      if (waiting === undefined) return;
      this.#begin(waiting);
      const message = 'OpenCode ended before handling this message. Send it again.';
      this.#finish({ kind: 'failed', message, code: 'agent_exited' });
    }
  }

  /** @param runId run left open by an earlier process; null for none */
  restore(runId: string | null): void {
    if (this.#open === null || this.#writer.turn?.runId === runId) return;
    const { parentId, answered } = this.#open;
    this.#writer.finish({ kind: 'success' });
    // The earlier process closed the turn early, so the rest becomes another turn.
    if (runId === null) this.#open = null;
    else this.#writer.begin(this.#causeOf(parentId, answered), runId);
    this.#writer.addAnswered(answered);
  }

  /** Marks the open turn's messages as closed. */
  release(): void {
    const { messages } = this.#open ?? {};
    this.#open = null;
    for (const message of messages ?? []) {
      message.isOver = message.isDone;
      message.wasClosedEarly = !message.isDone;
    }
  }

  #begin(parentId: string): void {
    if (this.#open !== null) this.release();
    const answered = this.#takeUnanswered(parentId);
    const isAgain = this.#opened.has(parentId);
    setBounded(this.#opened, parentId, true, MAX_REMEMBERED);
    this.#writer.begin(this.#causeOf(parentId, answered), isAgain ? this.#newRunId() : `turn_${parentId}`);
    this.#writer.addAnswered(answered);
    this.#open = { parentId, answered, messages: new Set(), newest: null, error: null };
  }

  /** Removes the message that a turn answers and all earlier ones, which the agent has read too. */
  #takeUnanswered(parentId: string): string[] {
    const waiting = [...this.#unanswered.keys()];
    const isTask = this.#authors.get(parentId)?.kind === 'task';
    const answered = isTask ? waiting : waiting.slice(0, waiting.indexOf(parentId) + 1);
    return answered.flatMap((messageId) => {
      const ids = this.#unanswered.get(messageId) ?? [];
      this.#unanswered.delete(messageId);
      return ids;
    });
  }

  #causeOf(parentId: string, answered: readonly string[]): TurnCause {
    const author = this.#authors.get(parentId);
    if (author?.kind === 'task') return { kind: 'between-run', trigger: { kind: 'task', taskIds: author.taskIds } };
    if (author?.kind === 'own') return { kind: 'user', userMessageIds: [] };
    return { kind: 'user', userMessageIds: answered.length > 0 ? answered : (author?.ids ?? [parentId]) };
  }

  #finish(end: TurnEnd, isInferred = false): void {
    this.release();
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
