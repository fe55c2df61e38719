import { type AttachmentKind, attachmentKind, readAttachments } from '@interlude/protocol/attachments';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { MAX_ATTACHMENT_BYTES } from '@interlude/protocol/limits';
import type { Cursor } from '../outbox/statements';
import { type AttachmentFile, type AttachmentStore, StoppedError } from './attachment-store';
import type { CommandOutcome } from './seen-commands';
import type { CommandOf, SessionFacts, SourceContext } from './source';

/** A message delivered to the agent that no turn has answered. */
export interface InFlightMessage {
  messageId: string;
  text: string;
  /** Text without the appended file paths, if there are any. */
  words?: string;
  files?: readonly AttachmentFile[];
}

export function inFlightMessage(
  messageId: string,
  text: string,
  files: readonly AttachmentFile[] = [],
): InFlightMessage {
  return { messageId, text, ...(files.length === 0 ? {} : { files }) };
}

/** Cursor prefixes of in-flight messages; the second is for Claude Code. */
export const IN_FLIGHT_CURSORS = ['in-hand:', 'claude-in-hand:'] as const;

/**
 * In-flight messages of one session. Stored before delivery is reported, so the next process knows which ones to look
 * up or deliver again.
 */
export class InFlightMessages {
  readonly #context: SourceContext;
  readonly #sessionId: string;
  readonly #cursorName: string;
  #messages: readonly InFlightMessage[];

  static async restore(context: SourceContext, sessionId: string): Promise<InFlightMessages> {
    const name = `${IN_FLIGHT_CURSORS[0]}${sessionId}`;
    const stored = (await context.cursors(name)).get(name);
    const recalled = new InFlightMessages(context, sessionId, JSON.parse(stored ?? '[]') as InFlightMessage[]);
    await recalled.findFiles();
    return recalled;
  }

  constructor(
    context: SourceContext,
    sessionId: string,
    messages: readonly InFlightMessage[],
    prefix: (typeof IN_FLIGHT_CURSORS)[number] = IN_FLIGHT_CURSORS[0],
  ) {
    this.#context = context;
    this.#sessionId = sessionId;
    this.#messages = messages;
    this.#cursorName = `${prefix}${sessionId}`;
  }

  /** Resolves the files of messages from an earlier process. */
  async findFiles(): Promise<void> {
    const here = async ({ files, ...message }: InFlightMessage) =>
      files === undefined ? message : { ...message, files: await this.#context.resolveFiles(this.#sessionId, files) };
    this.#messages = await Promise.all(this.#messages.map(here));
  }

  /** Oldest first. */
  get all(): readonly InFlightMessage[] {
    return this.#messages;
  }

  has(messageId: string): boolean {
    return this.#messages.some((message) => message.messageId === messageId);
  }

  /**
   * Resolves once stored: from then on the message survives the process. A message that is already in flight is updated
   * in place.
   */
  async put(message: InFlightMessage): Promise<void> {
    this.#messages = this.has(message.messageId)
      ? this.#messages.map((one) => (one.messageId === message.messageId ? message : one))
      : [...this.#messages, message];
    this.#context.changed();
    await this.#context.emit(this.#sessionId, [], [this.#cursor()]);
  }

  /** Removes messages that were answered, or that will never reach the agent. */
  remove(messageIds: readonly string[]): void {
    const remaining = this.#messages.filter(({ messageId }) => !messageIds.includes(messageId));
    if (remaining.length === this.#messages.length) return;
    this.#messages = remaining;
    void this.#context.emit(this.#sessionId, [], [this.#cursor()]);
    this.#context.changed();
  }

  #cursor(): Cursor {
    const value = this.#messages.length === 0 ? null : JSON.stringify(this.#messages);
    return { name: this.#cursorName, value };
  }
}

type Message = CommandOf<'message'>;

/** Time in which a connecting source finds its sessions. */
const FOUND_WITHIN_MS = 45_000;

/**
 * Delivers messages to a source together with their files.
 *
 * Ordering: messages of a session are delivered in order, however long one waits for its files or for the agent to
 * announce what it supports.
 * Failure: a message whose files are unavailable or unsupported is refused, and the next one continues. Messages
 * waiting when the runner stops stay open, as after a kill: the server sends them to the next process.
 */
export class MessageDelivery {
  readonly #store: Pick<AttachmentStore, 'files'>;
  readonly #foundWithinMs: number;
  /** By session: resolves once the last waiting message is delivered. */
  readonly #waiting = new Map<string, Promise<void>>();
  readonly #rechecks = new Set<() => void>();

  constructor(store: Pick<AttachmentStore, 'files'>, foundWithinMs = FOUND_WITHIN_MS) {
    this.#store = store;
    this.#foundWithinMs = foundWithinMs;
  }

  /** Called when session facts have changed. */
  recheck(): void {
    for (const recheck of [...this.#rechecks]) recheck();
  }

  /** @param facts reads the session; called when the message is next in order, and on changes */
  async pass(
    message: Message,
    facts: () => SessionFacts | undefined,
    deliver: (files: readonly AttachmentFile[]) => Promise<CommandOutcome>,
  ): Promise<CommandOutcome> {
    const sessionId = message.sessionId ?? '';
    const before = this.#waiting.get(sessionId);
    if (before === undefined && message.body.attachments === undefined) return deliver([]);
    // boxed, because later messages wait for the delivery but not for its outcome
    const delivered = (before ?? Promise.resolve())
      .then(() => this.#filesOf(message, facts))
      .then(
        (files) => ({ outcome: deliver(files) }),
        (error: Error) => {
          if (error instanceof StoppedError) return new Promise<never>(() => {});
          return { outcome: Promise.resolve<CommandOutcome>({ state: 'failed', reason: error.message }) };
        },
      );
    const tail = delivered.then(() => {
      if (this.#waiting.get(sessionId) === tail) this.#waiting.delete(sessionId);
    });
    this.#waiting.set(sessionId, tail);
    return await (await delivered).outcome;
  }

  async #filesOf(
    { sessionId, body, expiresAt }: Message,
    facts: () => SessionFacts | undefined,
  ): Promise<AttachmentFile[]> {
    // Validates hashes, since they become file names.
    const attachments = readAttachments(body.attachments);
    const invalid = (body.attachments?.length ?? 0) - attachments.length;
    if (invalid > 0 || attachments.some(({ bytes }) => bytes > MAX_ATTACHMENT_BYTES)) {
      throw new Error('the message has an invalid attachment; attach it again');
    }
    if (attachments.length === 0) return [];
    const supported = facts()?.attachments ?? null;
    if (supported !== null) assertSupported(supported, attachments);
    const files = await this.#store.files(sessionId ?? '', attachments, expiresAt);
    assertSupported(await this.#supported(facts), attachments);
    return files;
  }

  /**
   * Attachment kinds the agent supports. Waits for the agent to announce them; for an unknown session, only for the
   * time a source may need to find it.
   */
  async #supported(facts: () => SessionFacts | undefined): Promise<readonly AttachmentKind[]> {
    const foundBy = performance.now() + this.#foundWithinMs;
    for (;;) {
      const found = facts();
      if (found !== undefined && found.attachments !== null) return found.attachments;
      const remainingMs = found === undefined ? foundBy - performance.now() : null;
      if (remainingMs !== null && remainingMs <= 0) throw new Error('this runner has no such session');
      await new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer);
          this.#rechecks.delete(done);
          resolve();
        };
        const timer = remainingMs === null ? undefined : setTimeout(done, remainingMs).unref();
        this.#rechecks.add(done);
      });
    }
  }
}

/** @throws Error naming what the agent does not support */
function assertSupported(supported: readonly AttachmentKind[], attachments: readonly Attachment[]): void {
  const refused = attachments.find(({ mediaType }) => !supported.includes(attachmentKind(mediaType)));
  if (refused === undefined) return;
  const which = attachmentKind(refused.mediaType) === 'image' ? 'images' : 'files';
  throw new Error(`this agent does not support ${which}; send the message without them`);
}
