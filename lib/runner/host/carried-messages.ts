import { type AttachmentKind, attachmentKind, readAttachments } from '@interlude/protocol/attachments';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { MAX_ATTACHMENT_BYTES } from '@interlude/protocol/limits';
import { type AttachmentFile, type AttachmentStore, StoppedError } from './attachment-store';
import type { CommandOutcome } from './seen-commands';
import type { CommandOf, SessionFacts } from './source';

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
export class CarriedMessages {
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
    if (takes !== null) mustTake(takes, attachments);
    const files = await this.#store.files(sessionId ?? '', attachments, expiresAt);
    mustTake(await this.#known(facts), attachments);
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
function mustTake(takes: readonly AttachmentKind[], attachments: readonly Attachment[]): void {
  const refused = attachments.find(({ mediaType }) => !takes.includes(attachmentKind(mediaType)));
  if (refused === undefined) return;
  const which = attachmentKind(refused.mediaType) === 'image' ? 'images' : 'files';
  throw new Error(`this agent takes no ${which}; send the message without them`);
}
