import { browserStorage } from '@/components/ui/browser-storage';
import { type Draft, EMPTY_DRAFT, readDraft, storeDraft } from './draft-store';
import { isKept } from './kept-attachment';
import { outgoingQueues } from './outgoing-queues';
import { uploadAttachment } from './upload-attachment';
import { textWith, UploadList } from './upload-list';

/**
 * What is attached in each session: it goes on being sent while another page is looked at, and a message that waits for
 * it goes when it is there.
 *
 * Failure: with the browser's page all that is still being sent is lost, so the browser asks before that.
 */
class UploadLists {
  readonly #lists = new Map<string, UploadList>();
  /** What was being written where nobody writes any more. */
  readonly #left = new Map<string, Draft>();

  of(sessionId: string): UploadList {
    const known = this.#lists.get(sessionId);
    if (known !== undefined) return known;
    const list = new UploadList({
      upload: (file, onProgress, signal) => uploadAttachment(sessionId, file, onProgress, signal),
      isKept: (attachment) => isKept(sessionId, attachment),
      addresses: URL,
    });
    // The server renders for everybody.
    if (typeof window === 'undefined') return list;
    list.subscribe(() => this.#askBeforeUnload());
    this.#lists.set(sessionId, list);
    return list;
  }

  /** Somebody writes here. @returns what was being written, if it waits to be sent */
  arrive(sessionId: string): Draft | null {
    const list = this.of(sessionId);
    const left = this.#left.get(sessionId) ?? null;
    this.#left.delete(sessionId);
    if (list.uploads.length === 0) list.restore(readDraft(browserStorage(), sessionId).attachments ?? []);
    return list.isAwaited ? left : null;
  }

  /** Nobody writes here any more, and nothing is attached. */
  leave(sessionId: string, draft: Draft): void {
    const list = this.of(sessionId);
    this.#left.set(sessionId, draft);
    list.usedFor({
      takes: [],
      onChange: (attachments) => {
        const storage = browserStorage();
        storeDraft(storage, sessionId, { ...readDraft(storage, sessionId), attachments });
      },
      onReady: () => {
        const { attachments } = list;
        outgoingQueues.of(sessionId).post(textWith(draft.text, attachments), draft.replyTo, attachments);
        storeDraft(browserStorage(), sessionId, EMPTY_DRAFT);
        list.clear();
      },
    });
  }

  #askBeforeUnload(): void {
    // A page that listens for it always is not kept for the way back.
    if ([...this.#lists.values()].some((list) => list.isSending)) addEventListener('beforeunload', ask);
    else removeEventListener('beforeunload', ask);
  }
}

function ask(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

/** Those of this browser's visit. */
export const uploadLists = new UploadLists();
