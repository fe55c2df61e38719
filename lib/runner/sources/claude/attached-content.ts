import { isImageType } from '@interlude/protocol/attachments';
import { attachedBytes } from '../../host/attached-bytes';
import { MAX_TEXT_BYTES, withFiles } from '../../host/attached-text';
import type { AttachmentFile } from '../../host/attachment-store';
import type { ContentBlock, UserMessage } from './claude-sdk';

/** Anthropic's API takes images of 5 MB in base64; Claude Code makes larger ones smaller when it reads them itself. */
const MAX_IMAGE_BYTES = 3_750_000;
/**
 * A message with what it carries: images, PDFs and short texts in the message itself, anything else by the path of its
 * file. Of what is lost it is said that it is, so that the message gets through.
 *
 * @see Messages API, content blocks of a user message: `text`, `image`, `document`
 */
export function carrying(message: UserMessage, files: readonly AttachmentFile[]): UserMessage {
  const blocks: ContentBlock[] = [];
  const [others, lost]: [AttachmentFile[], AttachmentFile[]] = [[], []];
  for (const file of files) {
    const bytes = attachedBytes(file);
    const block = bytes === null ? null : blockOf(file, bytes);
    if (block !== null) blocks.push(block);
    else (bytes === null ? lost : others).push(file);
  }
  const said = message.message.content.map((block) =>
    block.type === 'text' ? { ...block, text: withFiles(block.text, others, lost) } : block,
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
