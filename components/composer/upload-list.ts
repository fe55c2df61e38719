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
import { outgoingQueues } from './outgoing-queue';
import { isKept, type UploadOutcome, uploadAttachment } from './upload-attachment';

export interface Upload {
  key: number;
  name: string;
  mediaType: string;
  bytes: number;
  /** Where this page has its picture; null if it has none, or the server has it. */
  preview: string | null;
  state:
    | { kind: 'sending'; share: number }
    | { kind: 'done'; attachment: Attachment }
    /** `was`: what the server had of it and has no more. */
    | { kind: 'failed'; reason: string; canRetry: boolean; was?: Attachment };
}

/** Whom it is for, as things stand now. */
interface UploadListUse {
  /** What the agent takes. */
  takes: readonly AttachmentKind[];
  /** What is to be kept has changed. */
  onChange: (attachments: readonly Attachment[]) => void;
  /** What a message waited for is all there: if it can be sent, it is. */
  onReady: () => void;
}

export interface UploadListOptions {
  upload(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<UploadOutcome>;
  /** Whether the server still has it; null if that can't be told. */
  isKept(attachment: Attachment): Promise<boolean | null>;
  /** The address of a file of this page, and the end of it. */
  addresses: Pick<typeof URL, 'createObjectURL' | 'revokeObjectURL'>;
}

/**
 * What is attached to the message that is being written.
 *
 * Ordering: they go with the message in the order in which they were attached, whichever is sent first.
 * Failure: what the message could not carry is refused before it is sent, and says so in its place. What did not get
 * through can be tried again. A message waits until the server has all that is attached to it, and is not sent without
 * what has failed, nor without what was removed while it waited: its writer decides.
 */
export class UploadList extends Store {
  readonly #options: UploadListOptions;
  readonly #files = new Map<number, { file: File; call: AbortController }>();
  #uploads: readonly Upload[] = [];
  #lastKey = 0;
  #use: UploadListUse = { takes: [], onChange: () => {}, onReady: () => {} };
  #isAwaited = false;

  constructor(options: UploadListOptions) {
    super();
    this.#options = options;
  }

  usedFor(use: UploadListUse): void {
    this.#use = use;
  }

  /** The same array until something changes. */
  get uploads(): readonly Upload[] {
    return this.#uploads;
  }

  /** What the server has. */
  get attachments(): Attachment[] {
    return this.#uploads.flatMap(({ state }) => (state.kind === 'done' ? [state.attachment] : []));
  }

  /** What the next page is to find: also what the server has no more, until its writer has dealt with that. */
  get #kept(): Attachment[] {
    return this.#uploads.flatMap(({ state }) => {
      if (state.kind === 'done') return [state.attachment];
      return state.kind === 'failed' && state.was !== undefined ? [state.was] : [];
    });
  }

  /** A message waits for it. */
  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  get isSending(): boolean {
    return this.#has('sending');
  }

  /** What a message waits for, or lacks; null if it can be sent. */
  get words(): string | null {
    if (this.#has('failed')) return 'Try again or remove what is not attached: the message is not sent without it.';
    return this.#isAwaited ? 'The message is sent once everything is attached.' : null;
  }

  /** Somebody wants to send the message. @returns whether it can be sent now; else `onReady` may say so later */
  mayBeSent(): boolean {
    if (this.#has('failed')) return false;
    if (!this.#has('sending')) return true;
    this.#putAwaited(true);
    return false;
  }

  /**
   * What was attached before: by an earlier page, or to a message that was not taken. The server is asked whether it
   * still has it. A message that waits does not go with that: its writer sends it again.
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
    this.#use.onChange(this.#kept);
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
    const kept = this.#files.get(key);
    const upload = this.#uploads.find((one) => one.key === key);
    if (kept === undefined || upload?.state.kind !== 'failed') return;
    this.#set(key, { kind: 'sending', share: 0 });
    void this.#send(key, kept.file);
  }

  remove(key: number): void {
    const upload = this.#uploads.find((one) => one.key === key);
    if (upload === undefined) return;
    this.#isAwaited = false;
    this.#forget(upload);
    this.#put(this.#uploads.filter((one) => one !== upload));
    this.#use.onChange(this.#kept);
  }

  /** They have gone with a message. */
  clear(): void {
    for (const upload of this.#uploads) this.#forget(upload);
    this.#isAwaited = false;
    this.#put([]);
  }

  async #send(key: number, file: File): Promise<void> {
    const call = new AbortController();
    this.#files.set(key, { file, call });
    const onProgress = (share: number) => this.#set(key, { kind: 'sending', share });
    const outcome = await this.#options.upload(file, onProgress, call.signal);
    if (call.signal.aborted) return;
    this.#set(key, outcome);
    if (outcome.kind === 'done') this.#isThereAgain(outcome.attachment);
    this.#settle();
  }

  async #check(key: number, attachment: Attachment): Promise<void> {
    const isKept = await this.#options.isKept(attachment);
    const isHere = this.#uploads.some((one) => one.key === key && one.state.kind === 'done');
    if (isKept !== false || !isHere) return;
    const reason = 'The server no longer keeps it: attach it again.';
    this.#set(key, { kind: 'failed', reason, canRetry: false, was: attachment });
    this.#settle();
  }

  /** It takes the place of what the server had forgotten. */
  #isThereAgain({ hash }: Attachment): void {
    this.#put(this.#uploads.filter(({ state }) => state.kind !== 'failed' || state.was?.hash !== hash));
    this.#use.onChange(this.#kept);
  }

  /** A message that waited goes; one that lacks something does not go later, when nobody looks any more. */
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
    if (!this.#use.takes.includes(kind)) return `This agent takes no ${kind}s.`;
    // Some systems give a folder like this.
    if (size === 0) return type === '' ? 'It is empty. If it is a folder, attach the files in it.' : 'It is empty.';
    if (size > MAX_ATTACHMENT_BYTES) return `It is larger than ${MAX_ATTACHMENT_BYTES / MIB} MiB.`;
    return this.#excessOf(size);
  }

  /** Why a message could not carry so much more. */
  #excessOf(size: number): string | null {
    const whole = this.#uploads.filter(({ state }) => state.kind !== 'failed');
    const bytes = whole.reduce((sum, one) => sum + one.bytes, size);
    if (whole.length >= MAX_MESSAGE_ATTACHMENTS) return `A message carries ${MAX_MESSAGE_ATTACHMENTS} at most.`;
    if (bytes > MAX_MESSAGE_ATTACHMENT_BYTES) {
      return `A message carries ${MAX_MESSAGE_ATTACHMENT_BYTES / MIB} MiB at most: send it with another one.`;
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

/** What a message says. */
export function messageText(text: string, attachments: readonly Attachment[]): string {
  return text.trim() === '' ? attachmentNames(attachments) : text;
}

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
        outgoingQueues.of(sessionId).post(messageText(draft.text, attachments), draft.replyTo, attachments);
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
