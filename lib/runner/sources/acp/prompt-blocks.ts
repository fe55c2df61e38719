import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { isImageType, isTextType } from '@/lib/protocol/attachments';
import { type Fields, fieldsOf } from '@/lib/protocol/fields';
import type { AttachmentFile } from '@/lib/runner/host/attachment-store';
import type { HandedMessage } from '@/lib/runner/host/messages-in-hand';

/** What an agent takes in a prompt beside text and links to files, which all of them take. */
export interface PromptCapabilities {
  image: boolean;
  embeddedContext: boolean;
}

export function promptCapabilities(agentCapabilities: Fields): PromptCapabilities {
  const { image, embeddedContext } = fieldsOf(agentCapabilities.promptCapabilities);
  return { image: image === true, embeddedContext: embeddedContext === true };
}

/** A longer text would fill the context; of a link the agent reads what it needs. */
const MAX_TEXT_BYTES = 64 * 1024;

/**
 * A message as the blocks of a prompt. Its files are read in this step: what is said behind it must not overtake it.
 *
 * @see ACP v1, ContentBlock
 */
export function promptBlocks({ text, files = [] }: HandedMessage, takes: PromptCapabilities): object[] {
  return [{ type: 'text', text }, ...files.map((file) => blockOf(file, takes))];
}

function blockOf(file: AttachmentFile, takes: PromptCapabilities): object {
  const { path, name, mediaType: mimeType, bytes: size } = file;
  const uri = pathToFileURL(path).href;
  try {
    if (takes.image && isImageType(mimeType)) return { type: 'image', mimeType, data: readFileSync(path, 'base64') };
    if (takes.embeddedContext && isTextType(mimeType) && size <= MAX_TEXT_BYTES) {
      return { type: 'resource', resource: { uri, mimeType, text: readFileSync(path, 'utf8') } };
    }
  } catch {
    // The message gets through all the same, and the agent says what it can't read.
  }
  return { type: 'resource_link', uri, name, mimeType, size };
}
