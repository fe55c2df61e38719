import { pathToFileURL } from 'node:url';
import { isImageType, isTextType, textInstead } from '@interlude/protocol/attachments';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { blockText } from '../../adapters/acp/content';
import { Replay } from '../../adapters/acp/replay';
import type { WireFrame } from '../../adapters/wire';
import {
  type AttachmentFile,
  hashOf,
  MAX_TEXT_BYTES,
  missingFilesText,
  readAttachment,
} from '../../host/attachment-store';
import type { InFlightMessage } from '../../host/message-delivery';

/** What an agent takes in a prompt beside text and links to files, which all of them take. */
export interface PromptCapabilities {
  image: boolean;
  embeddedContext: boolean;
}

export function promptCapabilities(agentCapabilities: Fields): PromptCapabilities {
  const { image, embeddedContext } = fieldsOf(agentCapabilities.promptCapabilities);
  return { image: image === true, embeddedContext: embeddedContext === true };
}

/**
 * A message as the blocks of a prompt. Its files are read in this step: what is said behind it must not overtake it.
 *
 * @see ACP v1, ContentBlock
 */
export function promptBlocks({ text, files = [] }: InFlightMessage, takes: PromptCapabilities): object[] {
  const blocks: object[] = [{ type: 'text', text }];
  const lost: AttachmentFile[] = [];
  for (const file of files) {
    const bytes = readAttachment(file);
    if (bytes === null) lost.push(file);
    else blocks.push(blockOf(file, bytes, takes));
  }
  return lost.length === 0 ? blocks : [...blocks, { type: 'text', text: missingFilesText(lost) }];
}

function blockOf(
  { path, name, mediaType: mimeType, bytes: size }: AttachmentFile,
  bytes: Buffer,
  takes: PromptCapabilities,
): object {
  const uri = pathToFileURL(path).href;
  if (takes.image && isImageType(mimeType)) return { type: 'image', mimeType, data: bytes.toString('base64') };
  if (takes.embeddedContext && isTextType(mimeType) && size <= MAX_TEXT_BYTES) {
    return { type: 'resource', resource: { uri, mimeType, text: bytes.toString('utf8') } };
  }
  return { type: 'resource_link', uri, name, mimeType, size };
}

/** A message in an agent's past, block by block: text as it is, of all else a line that has its address or its hash. */
export type ReplayedMessage = readonly string[];

const BETWEEN_BLOCKS = '\0';

/**
 * What people wrote by the account of an agent that loads a session: enough of it to tell two messages apart that say the
 * same and carry something else.
 */
export class ReplayRecorder {
  #replay: Replay | null = null;
  #nativeId: string | null = null;

  heard({ dir, msg }: WireFrame): void {
    const { method, params } = fieldsOf(msg);
    const { sessionId, update } = fieldsOf(params);
    if (dir === 'out' && method === 'session/load') {
      this.#replay = new Replay();
      this.#nativeId = textOf(sessionId);
    }
    if (dir === 'out' || method !== 'session/update' || textOf(sessionId) !== this.#nativeId) return;
    const { content, ...told } = fieldsOf(update);
    this.#replay?.takes({ ...told, content: { type: 'text', text: blockLine(content) + BETWEEN_BLOCKS } }, 0);
  }

  /** Oldest first. From here on, what is heard is no past any more. */
  over(): ReplayedMessage[] {
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
 * The words a message begins with. One that has none is sent with the names of its files instead, which the next picture
 * may have as well: those are told apart.
 */
export function promptText({ messageId, text, files = [] }: InFlightMessage): string {
  return isTextless({ text, files }) ? `${text} (${hashOf(Buffer.from(messageId)).slice(0, 8)})` : text;
}

/**
 * Whether an agent's past has this message. What it carries stands behind its words there: all of it, and nothing else, by
 * hash or word for word. Where that can't be seen, it is another message: given twice is better than lost.
 */
export function isReplayed(message: InFlightMessage, past: ReplayedMessage): boolean {
  const { text, files = [] } = message;
  const words = promptText(message).trim();
  if (files.length === 0) return past.join('').trim() === words;
  const carried = blocksAfter(words, past)?.filter((block) => block.trim() !== '') ?? null;
  if (carried === null || isTextless({ text, files })) return carried !== null;
  const isEach = files.every((file) => carried.some((block) => matchesFile(file, block)));
  return isEach && carried.every((block) => files.some((file) => matchesFile(file, block)));
}

function isTextless({ text, files }: { text: string; files: readonly AttachmentFile[] }): boolean {
  return files.length > 0 && text === textInstead(files);
}

/** @returns the blocks behind these words; null if it begins with others */
function blocksAfter(words: string, past: ReplayedMessage): ReplayedMessage | null {
  let said = '';
  for (const [at, block] of past.entries()) {
    said += block;
    if (said.trim() === words) return past.slice(at + 1);
  }
  return null;
}

function matchesFile(file: AttachmentFile, block: string): boolean {
  if (block.includes(file.hash)) return true;
  if (!isTextType(file.mediaType) || file.bytes > MAX_TEXT_BYTES) return false;
  return block.trim() === readAttachment(file)?.toString('utf8').trim();
}
