import { type Attachment, type AttachmentKind, attachmentKind, readAttachments } from '@interlude/protocol/attachments';
import { MAX_ATTACHMENT_BYTES } from '@interlude/protocol/limits';
import type { CommandOutcome } from '../commands/seen-commands';
import type { Cursor } from '../outbox/statements';
import { type AttachmentFile, type AttachmentStore, StoppedError } from './attachment-store';
import type { CommandOf, SessionFacts, SourceContext } from './source';

/** A message that was handed to the agent and that no turn has answered. */
export interface InFlightMessage {
  messageId: string;
  text: string;
  /** The text before its files were named in it, where that is how its agent is given them. */
  words?: string;
  /** What it carries; left out if that is nothing. */
  files?: readonly AttachmentFile[];
}

/** @param files as they come with a message: most carry nothing */
export function inFlightMessage(
  messageId: string,
  text: string,
  files: readonly AttachmentFile[] = [],
): InFlightMessage {
  return { messageId, text, ...(files.length === 0 ? {} : { files }) };
}

/** Where messages in hand are stored, by the beginnings of the names: in the second place those of Claude Code. */
export const IN_FLIGHT_CURSORS = ['in-hand:', 'claude-in-hand:'] as const;

/** Messages that an earlier process had in hand, with their files where those are now. */
export async function withLocalFiles(
  context: Pick<SourceContext, 'attached'>,
  sessionId: string,
  messages: readonly InFlightMessage[],
): Promise<InFlightMessage[]> {
  const here = async ({ files, ...message }: InFlightMessage) =>
    files === undefined ? message : { ...message, files: await context.attached(sessionId, files) };
  return await Promise.all(messages.map(here));
}

/**
 * The messages of one session that its agent has, by the runner's own account: stored before the word that they were
 * delivered, so that the next process knows which to ask about, or to give again.
 */
export class InFlightMessages {
  readonly #context: SourceContext;
  readonly #sessionId: string;
  #messages: readonly InFlightMessage[];

  /** What the processes before this one left in hand. */
  static async recall(context: SourceContext, sessionId: string): Promise<InFlightMessages> {
    const stored = (await context.cursors(cursorName(sessionId))).get(cursorName(sessionId));
    const messages = JSON.parse(stored ?? '[]') as InFlightMessage[];
    return new InFlightMessages(context, sessionId, await withLocalFiles(context, sessionId, messages));
  }

  private constructor(context: SourceContext, sessionId: string, messages: readonly InFlightMessage[]) {
    this.#context = context;
    this.#sessionId = sessionId;
    this.#messages = messages;
  }

  /** Oldest first. */
  get all(): readonly InFlightMessage[] {
    return this.#messages;
  }

  has(messageId: string): boolean {
    return this.#messages.some((message) => message.messageId === messageId);
  }

  /**
   * Resolves once it is stored: from then on the message is not forgotten with this process. One that is in hand already
   * keeps its place, as it is given now.
   */
  async take(message: InFlightMessage): Promise<void> {
    this.#messages = this.has(message.messageId)
      ? this.#messages.map((one) => (one.messageId === message.messageId ? message : one))
      : [...this.#messages, message];
    this.#context.changed();
    await this.#context.emit(this.#sessionId, [], [this.#cursor()]);
  }

  /** A turn has answered them, or they will never reach the agent. */
  letGo(messageIds: readonly string[]): void {
    const kept = this.#messages.filter(({ messageId }) => !messageIds.includes(messageId));
    if (kept.length === this.#messages.length) return;
    this.#messages = kept;
    void this.#context.emit(this.#sessionId, [], [this.#cursor()]);
    this.#context.changed();
  }

  #cursor(): Cursor {
    const value = this.#messages.length === 0 ? null : JSON.stringify(this.#messages);
    return { name: cursorName(this.#sessionId), value };
  }
}

function cursorName(sessionId: string): string {
  return `${IN_FLIGHT_CURSORS[0]}${sessionId}`;
}

type Message = CommandOf<'message'>;

/** A source that is still connecting has found its sessions by then. */
const FOUND_WITHIN_MS = 45_000;

/**
 * Messages on their way to a source, each with the files of what it carries.
 *
 * Ordering: a session's messages are said in the order in which they came, however long one of them waits for its bytes,
 * or for its agent to say what it takes.
 * Failure: a message whose bytes can't be had, or whose agent does not take them, is refused, and the next one passes.
 * What waits when the runner is stopped stays open, as after a kill: the next process is sent it again.
 */
export class MessageDelivery {
  readonly #store: Pick<AttachmentStore, 'files'>;
  readonly #foundWithinMs: number;
  /** By session: resolves once the last message that waited has been said. */
  readonly #waiting = new Map<string, Promise<void>>();
  readonly #looking = new Set<() => void>();

  constructor(store: Pick<AttachmentStore, 'files'>, foundWithinMs = FOUND_WITHIN_MS) {
    this.#store = store;
    this.#foundWithinMs = foundWithinMs;
  }

  /** What is known of sessions has changed. */
  look(): void {
    for (const look of [...this.#looking]) look();
  }

  /** @param facts what is known of its session, asked for when its turn has come, and on each change until it is enough */
  async pass(
    message: Message,
    facts: () => SessionFacts | undefined,
    say: (files: readonly AttachmentFile[]) => Promise<CommandOutcome>,
  ): Promise<CommandOutcome> {
    const sessionId = message.sessionId ?? '';
    const before = this.#waiting.get(sessionId);
    if (before === undefined && message.body.attachments === undefined) return say([]);
    // boxed: what waits behind it waits until it is said, not for what comes of that
    const said = (before ?? Promise.resolve())
      .then(() => this.#filesOf(message, facts))
      .then(
        (files) => ({ outcome: say(files) }),
        (error: Error) => {
          if (error instanceof StoppedError) return new Promise<never>(() => {});
          return { outcome: Promise.resolve<CommandOutcome>({ state: 'failed', reason: error.message }) };
        },
      );
    const tail = said.then(() => {
      if (this.#waiting.get(sessionId) === tail) this.#waiting.delete(sessionId);
    });
    this.#waiting.set(sessionId, tail);
    return await (await said).outcome;
  }

  async #filesOf(
    { sessionId, body, expiresAt }: Message,
    facts: () => SessionFacts | undefined,
  ): Promise<AttachmentFile[]> {
    // A file is named by the hash, whoever the server is.
    const attachments = readAttachments(body.attachments);
    const misfits = (body.attachments?.length ?? 0) - attachments.length;
    if (misfits > 0 || attachments.some(({ bytes }) => bytes > MAX_ATTACHMENT_BYTES)) {
      throw new Error('the message carries something that is no attachment of this protocol');
    }
    if (attachments.length === 0) return [];
    const takes = facts()?.attachments ?? null;
    if (takes !== null) assertSupported(takes, attachments);
    const files = await this.#store.files(sessionId ?? '', attachments, expiresAt);
    assertSupported(await this.#known(facts), attachments);
    return files;
  }

  /**
   * What its agent takes. An agent that has not said so yet is waited for, as a message waits until it can be given; a
   * session that the runner does not carry, only as long as a source may take to find it.
   */
  async #known(facts: () => SessionFacts | undefined): Promise<readonly AttachmentKind[]> {
    const foundBy = performance.now() + this.#foundWithinMs;
    for (;;) {
      const known = facts();
      if (known !== undefined && known.attachments !== null) return known.attachments;
      const left = known === undefined ? foundBy - performance.now() : null;
      if (left !== null && left <= 0) throw new Error('this runner does not carry the session');
      await new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer);
          this.#looking.delete(done);
          resolve();
        };
        const timer = left === null ? undefined : setTimeout(done, left).unref();
        this.#looking.add(done);
      });
    }
  }
}

/** @throws Error that says what its agent does not take */
function assertSupported(takes: readonly AttachmentKind[], attachments: readonly Attachment[]): void {
  const refused = attachments.find(({ mediaType }) => !takes.includes(attachmentKind(mediaType)));
  if (refused === undefined) return;
  const which = attachmentKind(refused.mediaType) === 'image' ? 'images' : 'files';
  throw new Error(`this agent takes no ${which}; send the message without them`);
}
