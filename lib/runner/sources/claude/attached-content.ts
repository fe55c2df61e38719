import { readFile } from 'node:fs/promises';
import { isImageType } from '@/lib/protocol/attachments';
import { withFiles } from '@/lib/runner/host/attached-text';
import type { AttachmentFile } from '@/lib/runner/host/attachment-store';
import type { ContentBlock, UserMessage } from './claude-sdk';

/** Anthropic's API takes images of 5 MB in base64; Claude Code makes larger ones smaller when it reads them itself. */
const MAX_IMAGE_BYTES = 3_750_000;
/** A longer text would fill the context, where Claude Code reads what it needs of a file. */
const MAX_TEXT_BYTES = 64 * 1024;

/**
 * A message with what it carries: images, PDFs and short texts in the message itself, anything else by the path of its
 * file. What can't be read any more is named as well, so that the message gets through.
 *
 * @see Messages API, content blocks of a user message: `text`, `image`, `document`
 */
export async function carrying(message: UserMessage, files: readonly AttachmentFile[]): Promise<UserMessage> {
  const blocks: ContentBlock[] = [];
  const others: AttachmentFile[] = [];
  for (const file of files) {
    const block = await blockOf(file).catch(() => null);
    if (block === null) others.push(file);
    else blocks.push(block);
  }
  const said = message.message.content.map((block) =>
    block.type === 'text' ? { ...block, text: withFiles(block.text, others) } : block,
  );
  return { ...message, message: { role: 'user', content: [...blocks, ...said] } };
}

async function blockOf({ path, name, mediaType, bytes }: AttachmentFile): Promise<ContentBlock | null> {
  if (isImageType(mediaType)) {
    if (bytes > MAX_IMAGE_BYTES) return null;
    return { type: 'image', source: { type: 'base64', media_type: mediaType, data: await readFile(path, 'base64') } };
  }
  if (mediaType === 'application/pdf') {
    const source = { type: 'base64' as const, media_type: mediaType, data: await readFile(path, 'base64') };
    return { type: 'document', title: name, source };
  }
  if (bytes > MAX_TEXT_BYTES) return null;
  const source = { type: 'text' as const, media_type: 'text/plain' as const, data: await readFile(path, 'utf8') };
  return { type: 'document', title: name, source };
}
