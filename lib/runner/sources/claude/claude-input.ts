import { isImageType } from '@interlude/protocol/attachments';
import { type AttachmentFile, MAX_TEXT_BYTES, withFileList } from '../../host/attachment-store';
import { readAttachment } from '../../host/read-attachment';
import type { ContentBlock, UserMessage } from './claude-sdk';

interface Waiting {
  message: UserMessage;
  resolve: () => void;
  reject: (reason: Error) => void;
}

type WithContent = (message: UserMessage) => UserMessage;

/** Time after which the next message is sent although the CLI has not confirmed the previous one. */
const UNCONFIRMED_MS = 5_000;

/**
 * Input of the CLI across several processes.
 *
 * Ordering: first in, first out. The next message is passed on once the CLI has confirmed the previous one, so at most
 * one is between the runner and the queue of the CLI.
 * Failure: a message that no process pulled waits for the next process.
 */
export class InputQueue {
  readonly #onSent: (message: UserMessage) => void;
  readonly #addAttachments: WithContent;
  #waiting: Waiting[] = [];
  #unconfirmed: string | null = null;
  #closed: Error | null = null;
  #wake = () => {};

  /** @param addAttachments called when a message is sent, so that its files are read then */
  constructor(onSent: (message: UserMessage) => void, addAttachments: WithContent = (message) => message) {
    this.#onSent = onSent;
    this.#addAttachments = addAttachments;
  }

  /** Resolves once the message is in the input of the CLI. */
  push(message: UserMessage): Promise<void> {
    if (this.#closed !== null) return Promise.reject(this.#closed);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ message, resolve, reject });
      this.#wake();
    });
  }

  /** Requeues messages lost with a process, before those that no process had. */
  requeue(messages: readonly UserMessage[]): void {
    const ignore = () => {};
    this.#waiting.unshift(...messages.map((message) => ({ message, resolve: ignore, reject: ignore })));
    this.#wake();
  }

  /** UUIDs of messages that no process has pulled. */
  get waiting(): string[] {
    return this.#waiting.map(({ message }) => message.uuid);
  }

  /** Confirms a message, because a report about it proves that the CLI has it. */
  confirmed(uuid: string): void {
    if (this.#unconfirmed !== uuid) return;
    this.#unconfirmed = null;
    this.#wake();
  }

  /** Refuses further messages, because no further process will start. */
  close(reason: string): void {
    this.#closed = new Error(reason);
    for (const { reject } of this.#waiting.splice(0)) reject(this.#closed);
    this.#wake();
  }

  /** Input of one process, until the signal aborts. */
  async *messages(signal: AbortSignal): AsyncGenerator<UserMessage> {
    this.#unconfirmed = null;
    const wake = () => this.#wake();
    signal.addEventListener('abort', wake);
    try {
      while (!signal.aborted && this.#closed === null) {
        const next: Waiting | undefined = this.#unconfirmed === null ? this.#waiting[0] : undefined;
        if (next === undefined) {
          await this.#woken(this.#unconfirmed === null ? null : UNCONFIRMED_MS);
          continue;
        }
        const message = this.#addAttachments(next.message);
        this.#waiting.shift();
        this.#unconfirmed = message.uuid;
        this.#onSent(next.message);
        next.resolve();
        yield message;
      }
    } finally {
      signal.removeEventListener('abort', wake);
    }
  }

  /** @param withinMs after which an unconfirmed message counts as confirmed */
  #woken(withinMs: number | null): Promise<void> {
    return new Promise((resolve) => {
      const giveUpWaiting = () => {
        this.#unconfirmed = null;
        this.#wake();
      };
      const timer = withinMs === null ? null : setTimeout(giveUpWaiting, withinMs);
      this.#wake = () => {
        if (timer !== null) clearTimeout(timer);
        this.#wake = () => {};
        resolve();
      };
    });
  }
}

/** The API accepts 5 MB of base64. Claude Code shrinks larger images when it reads them from disk. */
const MAX_IMAGE_BYTES = 3_750_000;
/**
 * Adds attachments to a message: images, PDFs and short texts inline, others by path. Missing files are named, so that
 * the message still gets through.
 * @see Messages API, content blocks of a user message: `text`, `image`, `document`
 */
export function withAttachments(message: UserMessage, files: readonly AttachmentFile[]): UserMessage {
  const blocks: ContentBlock[] = [];
  const [others, lost]: [AttachmentFile[], AttachmentFile[]] = [[], []];
  for (const file of files) {
    const bytes = readAttachment(file);
    const block = bytes === null ? null : blockOf(file, bytes);
    if (block !== null) blocks.push(block);
    else (bytes === null ? lost : others).push(file);
  }
  const content = message.message.content.map((block) =>
    block.type === 'text' ? { ...block, text: withFileList(block.text, others, lost) } : block,
  );
  return { ...message, message: { role: 'user', content: [...blocks, ...content] } };
}

/** @returns null for files passed by path */
function blockOf({ name, mediaType }: AttachmentFile, bytes: Buffer): ContentBlock | null {
  if (isImageType(mediaType)) {
    if (bytes.byteLength > MAX_IMAGE_BYTES) return null;
    return { type: 'image', source: { type: 'base64', media_type: mediaType, data: bytes.toString('base64') } };
  }
  if (mediaType === 'application/pdf') {
    const source = { type: 'base64' as const, media_type: mediaType, data: bytes.toString('base64') };
    return { type: 'document', title: name, source };
  }
  if (bytes.byteLength > MAX_TEXT_BYTES) return null;
  const source = { type: 'text' as const, media_type: 'text/plain' as const, data: bytes.toString('utf8') };
  return { type: 'document', title: name, source };
}
