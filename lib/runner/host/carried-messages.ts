import { attachmentKind, readAttachments } from '@/lib/protocol/attachments';
import { MAX_ATTACHMENT_BYTES } from '@/lib/protocol/limits';
import type { CommandOutcome } from '@/lib/runner/commands/seen-commands';
import type { AttachmentFile, AttachmentStore } from './attachment-store';
import type { CommandOf, SessionFacts } from './source';

type Message = CommandOf<'message'>;

/**
 * Messages on their way to a source, each with the files of what it carries.
 *
 * Ordering: a session's messages are said in the order in which they came, however long one of them waits for its bytes.
 * Failure: a message whose bytes can't be had, or whose agent does not take them, is refused, and the next one passes.
 */
export class CarriedMessages {
  readonly #store: Pick<AttachmentStore, 'files'>;
  /** By session: resolves once the last message that waited has been said. */
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(store: Pick<AttachmentStore, 'files'>) {
    this.#store = store;
  }

  /** @param facts what is known of its session, asked for when its turn has come */
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
      .then(() => this.#filesOf(message, facts()))
      .then(
        (files) => ({ outcome: say(files) }),
        (error: Error) => ({ outcome: Promise.resolve<CommandOutcome>({ state: 'failed', reason: error.message }) }),
      );
    const tail = said.then(() => {
      if (this.#waiting.get(sessionId) === tail) this.#waiting.delete(sessionId);
    });
    this.#waiting.set(sessionId, tail);
    return await (await said).outcome;
  }

  async #filesOf({ sessionId, body }: Message, facts?: SessionFacts): Promise<AttachmentFile[]> {
    // A file is named by the hash, whoever the server is.
    const attachments = readAttachments(body.attachments);
    const misfits = (body.attachments?.length ?? 0) - attachments.length;
    if (misfits > 0 || attachments.some(({ bytes }) => bytes > MAX_ATTACHMENT_BYTES)) {
      throw new Error('the message carries something that is no attachment of this protocol');
    }
    const takes = facts?.attachments;
    const refused = attachments.find(({ mediaType }) => takes?.includes(attachmentKind(mediaType)) === false);
    if (refused !== undefined) {
      const which = attachmentKind(refused.mediaType) === 'image' ? 'images' : 'files';
      throw new Error(`this agent takes no ${which}; send the message without them`);
    }
    return attachments.length === 0 ? [] : await this.#store.files(sessionId ?? '', attachments);
  }
}
