import { pathToFileURL } from 'node:url';
import { attachmentNames, isImageType, isTextType } from '@interlude/protocol/attachments';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { blockText } from '../../adapters/acp/content';
import { Replay } from '../../adapters/acp/replay';
import type { WireFrame } from '../../adapters/wire';
import { type AttachmentFile, hashOf, MAX_TEXT_BYTES, missingFilesText } from '../../host/attachment-store';
import type { InFlightMessage } from '../../host/message-delivery';
import { readAttachment } from '../../host/read-attachment';

/** Prompt contents the agent supports besides text and file links, which all support. */
export interface PromptCapabilities {
  image: boolean;
  embeddedContext: boolean;
}

export function promptCapabilities(agentCapabilities: Fields): PromptCapabilities {
  const { image, embeddedContext } = fieldsOf(agentCapabilities.promptCapabilities);
  return { image: image === true, embeddedContext: embeddedContext === true };
}

/**
 * Converts a message to prompt blocks. Reads files synchronously, so that later messages can't overtake it.
 * @see ACP v1, ContentBlock
 */
export function promptBlocks({ text, files = [] }: InFlightMessage, supported: PromptCapabilities): object[] {
  const blocks: object[] = [{ type: 'text', text }];
  const lost: AttachmentFile[] = [];
  for (const file of files) {
    const bytes = readAttachment(file);
    if (bytes === null) lost.push(file);
    else blocks.push(blockOf(file, bytes, supported));
  }
  return lost.length === 0 ? blocks : [...blocks, { type: 'text', text: missingFilesText(lost) }];
}

function blockOf(
  { path, name, mediaType: mimeType, bytes: size }: AttachmentFile,
  bytes: Buffer,
  supported: PromptCapabilities,
): object {
  const uri = pathToFileURL(path).href;
  if (supported.image && isImageType(mimeType)) return { type: 'image', mimeType, data: bytes.toString('base64') };
  if (supported.embeddedContext && isTextType(mimeType) && size <= MAX_TEXT_BYTES) {
    return { type: 'resource', resource: { uri, mimeType, text: bytes.toString('utf8') } };
  }
  return { type: 'resource_link', uri, name, mimeType, size };
}

/** A replayed user message, block by block: text verbatim, anything else as a line with its URI or hash. */
export type ReplayedMessage = readonly string[];

const BETWEEN_BLOCKS = '\0';

/**
 * Collects user messages from the replay of a loaded session, with enough detail to distinguish messages with equal text
 * and different attachments.
 */
export class ReplayRecorder {
  #replay: Replay | null = null;
  #nativeId: string | null = null;

  record({ dir, msg }: WireFrame): void {
    const { method, params } = fieldsOf(msg);
    const { sessionId, update } = fieldsOf(params);
    if (dir === 'out' && method === 'session/load') {
      this.#replay = new Replay();
      this.#nativeId = textOf(sessionId);
    }
    if (dir === 'out' || method !== 'session/update' || textOf(sessionId) !== this.#nativeId) return;
    const { content, ...rest } = fieldsOf(update);
    this.#replay?.absorb({ ...rest, content: { type: 'text', text: blockLine(content) + BETWEEN_BLOCKS } }, 0);
  }

  /** Ends the replay. @returns the messages, oldest first */
  finish(): ReplayedMessage[] {
    const texts = this.#replay?.texts ?? [];
    this.#replay = null;
    return texts.map((text) => text.split(BETWEEN_BLOCKS));
  }
}

function blockLine(block: unknown): string {
  const { type, data, resource } = fieldsOf(block);
  const { uri, blob } = fieldsOf(resource);
  const bytes = [data, blob].find((one) => typeof one === 'string');
  const about = [textOf(uri), bytes === undefined ? null : hashOf(Buffer.from(bytes, 'base64')), blockText(block)];
  return type === 'text' ? blockText(block) : about.filter((one) => one !== null).join('\n');
}

/**
 * The text of a message. A message without text is sent with the names of its files, plus a suffix that makes it
 * unique.
 */
export function promptText({ messageId, text, files = [] }: InFlightMessage): string {
  return isTextless({ text, files }) ? `${text} (${hashOf(Buffer.from(messageId)).slice(0, 8)})` : text;
}

/**
 * True if the replay has this message with exactly its attachments, compared by hash or text. Without that evidence, it
 * counts as another message, because a duplicate is better than a loss.
 */
export function isReplayed(message: InFlightMessage, past: ReplayedMessage): boolean {
  const { text, files = [] } = message;
  const words = promptText(message).trim();
  if (files.length === 0) return past.join('').trim() === words;
  const attached = blocksAfter(words, past)?.filter((block) => block.trim() !== '') ?? null;
  if (attached === null || isTextless({ text, files })) return attached !== null;
  const isEach = files.every((file) => attached.some((block) => matchesFile(file, block)));
  return isEach && attached.every((block) => files.some((file) => matchesFile(file, block)));
}

function isTextless({ text, files }: { text: string; files: readonly AttachmentFile[] }): boolean {
  return files.length > 0 && text === attachmentNames(files);
}

/** @returns the blocks after this text; null if the message starts differently */
function blocksAfter(words: string, past: ReplayedMessage): ReplayedMessage | null {
  let text = '';
  for (const [index, block] of past.entries()) {
    text += block;
    if (text.trim() === words) return past.slice(index + 1);
  }
  return null;
}

function matchesFile(file: AttachmentFile, block: string): boolean {
  if (block.includes(file.hash)) return true;
  if (!isTextType(file.mediaType) || file.bytes > MAX_TEXT_BYTES) return false;
  return block.trim() === readAttachment(file)?.toString('utf8').trim();
}
