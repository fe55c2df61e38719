import { isImageType } from '@interlude/protocol/attachments';
import { type AttachmentFile, MAX_TEXT_BYTES, readAttachment, withFileList } from '../../host/attachment-store';
import type { ContentBlock, UserMessage } from './claude-sdk';

/**
 * Messages on their way into the CLI, over the lives of several of its processes.
 *
 * Ordering: first in, first out. The next one is handed over when the CLI has said that it queued or began the one
 * before, so that at most one is between us and its queue.
 * Failure: a message that no process has pulled waits for the next process.
 */
interface Waiting {
  message: UserMessage;
  handed: () => void;
  failed: (reason: Error) => void;
}

type WithContent = (message: UserMessage) => UserMessage;

/** A CLI that says nothing about its queue does not hold up the next message for longer. */
const UNCONFIRMED_MS = 5_000;

export class InputQueue {
  readonly #onHanded: (message: UserMessage) => void;
  readonly #wholeOf: WithContent;
  #waiting: Waiting[] = [];
  #unconfirmed: string | null = null;
  #closed: Error | null = null;
  #wake = () => {};

  /** @param wholeOf the message with what it carries, read when its turn has come; by default there is nothing */
  constructor(onHanded: (message: UserMessage) => void, wholeOf: WithContent = (message) => message) {
    this.#onHanded = onHanded;
    this.#wholeOf = wholeOf;
  }

  /** Resolves when the CLI's input has it. */
  push(message: UserMessage): Promise<void> {
    if (this.#closed !== null) return Promise.reject(this.#closed);
    return new Promise((handed, failed) => {
      this.#waiting.push({ message, handed, failed });
      this.#wake();
    });
  }

  /** A message that went down with a process: before what no process has had. */
  pushAgain(messages: readonly UserMessage[]): void {
    const ignore = () => {};
    this.#waiting.unshift(...messages.map((message) => ({ message, handed: ignore, failed: ignore })));
    this.#wake();
  }

  /** The uuids of those that no process has pulled. */
  get waiting(): string[] {
    return this.#waiting.map(({ message }) => message.uuid);
  }

  /** The CLI said something about the message: it has it. */
  confirmed(uuid: string): void {
    if (this.#unconfirmed !== uuid) return;
    this.#unconfirmed = null;
    this.#wake();
  }

  /** There will be no process to hand anything to. */
  close(reason: string): void {
    this.#closed = new Error(reason);
    for (const { failed } of this.#waiting.splice(0)) failed(this.#closed);
    this.#wake();
  }

  /** What one process reads, until the signal fires. */
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
        const message = this.#wholeOf(next.message);
        this.#waiting.shift();
        this.#unconfirmed = message.uuid;
        this.#onHanded(next.message);
        next.handed();
        yield message;
      }
    } finally {
      signal.removeEventListener('abort', wake);
    }
  }

  /** @param withinMs after it, what is unconfirmed is let go */
  #woken(withinMs: number | null): Promise<void> {
    return new Promise((resolve) => {
      const letGo = () => {
        this.#unconfirmed = null;
        this.#wake();
      };
      const timer = withinMs === null ? null : setTimeout(letGo, withinMs);
      this.#wake = () => {
        if (timer !== null) clearTimeout(timer);
        this.#wake = () => {};
        resolve();
      };
    });
  }
}

/** Anthropic's API takes images of 5 MB in base64; Claude Code makes larger ones smaller when it reads them itself. */
const MAX_IMAGE_BYTES = 3_750_000;
/**
 * A message with what it carries: images, PDFs and short texts in the message itself, anything else by the path of its
 * file. Of what is lost it is said that it is, so that the message gets through.
 *
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
  const said = message.message.content.map((block) =>
    block.type === 'text' ? { ...block, text: withFileList(block.text, others, lost) } : block,
  );
  return { ...message, message: { role: 'user', content: [...blocks, ...said] } };
}

/** @returns null for what is only named */
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
