import { type AttachmentKind, attachmentKind, attachmentNames, isImageType } from '@interlude/protocol/attachments';
import type { Attachment } from '@interlude/protocol/field-schemas';
import {
  MAX_ATTACHMENT_BYTES,
  MAX_MESSAGE_ATTACHMENT_BYTES,
  MAX_MESSAGE_ATTACHMENTS,
} from '@interlude/protocol/limits';
import { Store } from '@/components/live/store';
import { browserStorage } from '@/components/ui/browser-storage';
import { type Draft, EMPTY_DRAFT, readDraft, storeDraft } from './draft-store';
import { isStored, outgoingQueues } from './outgoing-queue';

export interface Upload {
  key: number;
  name: string;
  mediaType: string;
  bytes: number;
  /** Object URL of an image on this page; null for other files, and for files of an earlier page. */
  preview: string | null;
  state:
    | { kind: 'sending'; share: number }
    | { kind: 'done'; attachment: Attachment }
    /** `was`: the attachment that the server has removed. */
    | { kind: 'failed'; reason: string; canRetry: boolean; was?: Attachment };
}

export type UploadOutcome =
  | { kind: 'done'; attachment: Attachment }
  /** `canRetry`: uploading the same file again may succeed. */
  | { kind: 'failed'; reason: string; canRetry: boolean };

interface UploadListUse {
  accepts: readonly AttachmentKind[];
  /** Called with the attachments to store with the draft. */
  onChange: (attachments: readonly Attachment[]) => void;
  /** Called when all attachments that a message waits for are uploaded. */
  onReady: () => void;
}

interface UploadListOptions {
  upload(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<UploadOutcome>;
  /** True if the server still has the attachment; null if unknown. */
  isStored(attachment: Attachment): Promise<boolean | null>;
  addresses: Pick<typeof URL, 'createObjectURL' | 'revokeObjectURL'>;
}

/**
 * Attachments of a draft.
 *
 * Ordering: the message lists them in the order in which they were attached, not uploaded.
 * Failure: files over a limit are refused before the upload. Failed uploads can be retried. A message waits for all its
 * uploads. If one fails or is removed meanwhile, the message is not sent automatically: its author decides.
 */
export class UploadList extends Store {
  readonly #options: UploadListOptions;
  readonly #files = new Map<number, { file: File; call: AbortController }>();
  #uploads: readonly Upload[] = [];
  #lastKey = 0;
  #use: UploadListUse = { accepts: [], onChange: () => {}, onReady: () => {} };
  #isAwaited = false;

  constructor(options: UploadListOptions) {
    super();
    this.#options = options;
  }

  configure(use: UploadListUse): void {
    this.#use = use;
  }

  get uploads(): readonly Upload[] {
    return this.#uploads;
  }

  get attachments(): Attachment[] {
    return this.#uploads.flatMap(({ state }) => (state.kind === 'done' ? [state.attachment] : []));
  }

  /** Attachments to restore on the next page, including removed ones until the author has seen their removal. */
  get #restorable(): Attachment[] {
    return this.#uploads.flatMap(({ state }) => {
      if (state.kind === 'done') return [state.attachment];
      return state.kind === 'failed' && state.was !== undefined ? [state.was] : [];
    });
  }

  /** True while a message waits for the uploads. */
  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  get isSending(): boolean {
    return this.#has('sending');
  }

  /** Reason a message can't be sent yet; null if it can. */
  get words(): string | null {
    if (this.#has('failed')) return 'Retry or remove the failed attachments to send the message.';
    return this.#isAwaited ? 'The message will be sent when all uploads finish.' : null;
  }

  /** Requests sending the message. @returns true if it can be sent now; otherwise `onReady` may follow */
  mayBeSent(): boolean {
    if (this.#has('failed')) return false;
    if (!this.#has('sending')) return true;
    this.#putAwaited(true);
    return false;
  }

  /**
   * Adds attachments of an earlier page or of a message that was not sent, and checks that the server still has them.
   * Cancels a waiting message: its author has to send it again.
   */
  restore(attachments: readonly Attachment[]): void {
    if (this.#isAwaited) this.#putAwaited(false);
    if (attachments.length === 0) return;
    for (const attachment of attachments) {
      this.#lastKey += 1;
      const { name, mediaType, bytes } = attachment;
      const reason = this.#excessOf(bytes);
      const upload: Upload = {
        ...{ key: this.#lastKey, name, mediaType, bytes, preview: null },
        state:
          reason === null ? { kind: 'done', attachment } : { kind: 'failed', reason, canRetry: false, was: attachment },
      };
      this.#put([...this.#uploads, upload]);
      if (reason === null) void this.#check(upload.key, attachment);
    }
    this.#use.onChange(this.#restorable);
  }

  add(files: Iterable<File>): void {
    for (const file of files) {
      this.#lastKey += 1;
      const { name, type: mediaType, size: bytes } = file;
      const refusal = this.#refusalOf(file);
      const preview = isImageType(mediaType) ? this.#options.addresses.createObjectURL(file) : null;
      const upload: Upload = {
        ...{ key: this.#lastKey, name: name || 'unnamed', mediaType, bytes, preview },
        state: refusal === null ? { kind: 'sending', share: 0 } : { kind: 'failed', reason: refusal, canRetry: false },
      };
      this.#put([...this.#uploads, upload]);
      if (refusal === null) void this.#send(upload.key, file);
    }
  }

  tryAgain(key: number): void {
    const entry = this.#files.get(key);
    const upload = this.#uploads.find((one) => one.key === key);
    if (entry === undefined || upload?.state.kind !== 'failed') return;
    this.#set(key, { kind: 'sending', share: 0 });
    void this.#send(key, entry.file);
  }

  remove(key: number): void {
    const upload = this.#uploads.find((one) => one.key === key);
    if (upload === undefined) return;
    this.#isAwaited = false;
    this.#forget(upload);
    this.#put(this.#uploads.filter((one) => one !== upload));
    this.#use.onChange(this.#restorable);
  }

  /** Called when the message was sent. */
  clear(): void {
    for (const upload of this.#uploads) this.#forget(upload);
    this.#isAwaited = false;
    this.#put([]);
  }

  async #send(key: number, file: File): Promise<void> {
    const call = new AbortController();
    this.#files.set(key, { file, call });
    const onProgress = (share: number) => this.#set(key, { kind: 'sending', share });
    // Only loading the code for uploads rejects.
    const outcome = await this.#options.upload(file, onProgress, call.signal).catch(() => AWAY);
    if (call.signal.aborted) return;
    this.#set(key, outcome);
    if (outcome.kind === 'done') this.#dropRemoved(outcome.attachment);
    this.#settle();
  }

  async #check(key: number, attachment: Attachment): Promise<void> {
    const isStored = await this.#options.isStored(attachment);
    const isHere = this.#uploads.some((one) => one.key === key && one.state.kind === 'done');
    if (isStored !== false || !isHere) return;
    const reason = 'The server no longer has this file. Attach it again.';
    this.#set(key, { kind: 'failed', reason, canRetry: false, was: attachment });
    this.#settle();
  }

  /** Drops the removed attachment that a new upload of the same file replaces. */
  #dropRemoved({ hash }: Attachment): void {
    this.#put(this.#uploads.filter(({ state }) => state.kind !== 'failed' || state.was?.hash !== hash));
    this.#use.onChange(this.#restorable);
  }

  /**
   * Sends or cancels a waiting message. A failure cancels it, because its author may be gone by the time of a retry.
   */
  #settle(): void {
    if (!this.#isAwaited || (this.#has('sending') && !this.#has('failed'))) return;
    this.#isAwaited = false;
    if (!this.#has('failed')) this.#use.onReady();
  }

  #has(kind: Upload['state']['kind']): boolean {
    return this.#uploads.some(({ state }) => state.kind === kind);
  }

  #refusalOf({ size, type }: File): string | null {
    const kind = attachmentKind(type);
    if (!this.#use.accepts.includes(kind)) return `This agent doesn’t accept ${kind}s.`;
    // Some systems report a folder like this.
    if (size === 0) return `The file is empty.${type === '' ? ' If it is a folder, attach the files in it.' : ''}`;
    if (size > MAX_ATTACHMENT_BYTES) return `Larger than ${MAX_ATTACHMENT_BYTES / MIB} MiB.`;
    return this.#excessOf(size);
  }

  /** Reason another attachment of this size can't be added; null if it fits the limits. */
  #excessOf(size: number): string | null {
    const counted = this.#uploads.filter(({ state }) => state.kind !== 'failed');
    const bytes = counted.reduce((sum, one) => sum + one.bytes, size);
    if (counted.length >= MAX_MESSAGE_ATTACHMENTS)
      return `A message can have at most ${MAX_MESSAGE_ATTACHMENTS} attachments.`;
    if (bytes > MAX_MESSAGE_ATTACHMENT_BYTES) {
      return `A message can have at most ${MAX_MESSAGE_ATTACHMENT_BYTES / MIB} MiB of attachments. Send this one separately.`;
    }
    return null;
  }

  #forget({ key, preview }: Upload): void {
    this.#files.get(key)?.call.abort();
    this.#files.delete(key);
    if (preview !== null) this.#options.addresses.revokeObjectURL(preview);
  }

  #set(key: number, state: Upload['state']): void {
    if (!this.#uploads.some((upload) => upload.key === key)) return;
    this.#put(this.#uploads.map((upload) => (upload.key === key ? { ...upload, state } : upload)));
  }

  #putAwaited(isAwaited: boolean): void {
    this.#isAwaited = isAwaited;
    this.#put([...this.#uploads]);
  }

  #put(uploads: readonly Upload[]): void {
    this.#uploads = uploads;
    this.changed();
  }
}

const MIB = 1024 * 1024;

/** The outcome of an upload that did not reach the server. */
export const AWAY: UploadOutcome = { kind: 'failed', reason: 'The server can’t be reached.', canRetry: true };

/** The author's text, or the attachments' names if there is none. */
export function messageText(text: string, attachments: readonly Attachment[]): string {
  return text.trim() === '' ? attachmentNames(attachments) : text;
}

/**
 * Upload lists of all sessions. Uploads, and messages that wait for them, continue while the reader is on another page.
 *
 * Failure: closing the tab aborts uploads, so the browser asks first.
 */
class UploadLists {
  readonly #lists = new Map<string, UploadList>();
  /** Drafts of sessions whose composer is unmounted. */
  readonly #drafts = new Map<string, Draft>();

  of(sessionId: string): UploadList {
    const known = this.#lists.get(sessionId);
    if (known !== undefined) return known;
    const list = new UploadList({
      upload: async (...file) => {
        const { uploadAttachment } = await import('./upload-attachment');
        return uploadAttachment(sessionId, ...file);
      },
      isStored: (attachment) => isStored(sessionId, attachment),
      addresses: URL,
    });
    // The server shares this module between users.
    if (typeof window === 'undefined') return list;
    list.subscribe(() => this.#askBeforeUnload());
    this.#lists.set(sessionId, list);
    return list;
  }

  /** Called when the composer mounts. @returns the draft if it is waiting to be sent */
  arrive(sessionId: string): Draft | null {
    const list = this.of(sessionId);
    const draft = this.#drafts.get(sessionId) ?? null;
    this.#drafts.delete(sessionId);
    if (list.uploads.length === 0) list.restore(readDraft(browserStorage(), sessionId).attachments ?? []);
    return list.isAwaited ? draft : null;
  }

  /** Called when the composer unmounts: no more files are added, and a waiting message is sent from here. */
  leave(sessionId: string, draft: Draft): void {
    const list = this.of(sessionId);
    this.#drafts.set(sessionId, draft);
    list.configure({
      accepts: [],
      onChange: (attachments) => {
        const storage = browserStorage();
        storeDraft(storage, sessionId, { ...readDraft(storage, sessionId), attachments });
      },
      onReady: () => {
        const { attachments } = list;
        outgoingQueues.of(sessionId).post(messageText(draft.text, attachments), draft.replyTo, attachments);
        storeDraft(browserStorage(), sessionId, EMPTY_DRAFT);
        list.clear();
      },
    });
  }

  #askBeforeUnload(): void {
    // A permanent `beforeunload` listener would keep the page out of the back/forward cache.
    if ([...this.#lists.values()].some((list) => list.isSending)) addEventListener('beforeunload', confirmLeave);
    else removeEventListener('beforeunload', confirmLeave);
  }
}

function confirmLeave(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

export const uploadLists = new UploadLists();
