import { pathToFileURL } from 'node:url';
import { isImageType, isTextType } from '@interlude/protocol/attachments';
import { type Fields, fieldsOf } from '@interlude/protocol/fields';
import { attachedBytes } from '../../host/attached-bytes';
import { lostText, MAX_TEXT_BYTES } from '../../host/attached-text';
import type { AttachmentFile } from '../../host/attachment-store';
import type { HandedMessage } from '../../host/messages-in-hand';

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
export function promptBlocks({ text, files = [] }: HandedMessage, takes: PromptCapabilities): object[] {
  const blocks: object[] = [{ type: 'text', text }];
  const lost: AttachmentFile[] = [];
  for (const file of files) {
    const bytes = attachedBytes(file);
    if (bytes === null) lost.push(file);
    else blocks.push(blockOf(file, bytes, takes));
  }
  return lost.length === 0 ? blocks : [...blocks, { type: 'text', text: lostText(lost) }];
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
