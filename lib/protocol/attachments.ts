import type { Attachment } from './field-schemas';
import { fieldsOf, listOf, textOf } from './fields';
import { MAX_MESSAGE_ATTACHMENTS } from './limits';
import { truncateText } from './text';

/** What a message carries besides its text. @see PROTOCOL.md, Attachments */

/** An attachment as a message names it. */
export type AttachmentRef = Pick<Attachment, 'hash' | 'name'>;

/** What an agent may take, in a status record's `attachments`. */
export const ATTACHMENT_KINDS = ['image', 'file'] as const;
export type AttachmentKind = (typeof ATTACHMENT_KINDS)[number];

export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
const FILE_TYPES = ['text/*', 'application/json', 'application/pdf'] as const;
/** All that are taken, as people and refusals name them. */
export const ATTACHMENT_TYPES: readonly string[] = [...IMAGE_TYPES, ...FILE_TYPES];

export function attachmentKind(mediaType: string): AttachmentKind {
  return isImageType(mediaType) ? 'image' : 'file';
}

export function isImageType(mediaType: string): boolean {
  return (IMAGE_TYPES as readonly string[]).includes(mediaType);
}

/** Text of any kind: its bytes are UTF-8. */
export function isTextType(mediaType: string): boolean {
  return /^text\/[a-z0-9][a-z0-9.+-]{0,99}$/.test(mediaType) || mediaType === 'application/json';
}

/** What a message says that has no words of its own: also those who see only its text are to know what it carries. */
export function attachmentNames(attachments: readonly Pick<AttachmentRef, 'name'>[]): string {
  return attachments.map(({ name }) => name).join(', ');
}

/** Whether a hash can be one. */
export function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

/** Where its bytes are, below `/api/v1`. @param name under which they are saved, if not that under which they were sent */
export function attachmentPath(hash: string, sessionId: string, name?: string): string {
  const query = new URLSearchParams({ session: sessionId, ...(name === undefined ? {} : { name }) });
  return `/attachments/${hash}?${query}`;
}

/** Longest name of an attachment, in UTF-16 code units. */
export const MAX_ATTACHMENT_NAME = 255;

/** What a list says that anybody may have written: what fits, the rest is left out. */
export function readAttachments(list: unknown): Attachment[] {
  return listOf(list)
    .slice(0, MAX_MESSAGE_ATTACHMENTS)
    .flatMap((one) => {
      const { hash, bytes, ...said } = fieldsOf(one);
      const [name, mediaType] = [textOf(said.name), textOf(said.mediaType)];
      const fits = isHash(hash) && typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes >= 0;
      if (!fits || name === null || mediaType === null || mediaType.length > MAX_ATTACHMENT_NAME) return [];
      return [{ hash, name: truncateText(name, MAX_ATTACHMENT_NAME), mediaType, bytes }];
    });
}

/** What an agent says that it takes, in its status record; nothing of that is certain. */
export function supportedAttachments(status: Record<string, unknown> | null): AttachmentKind[] {
  const said = listOf(status?.attachments);
  return ATTACHMENT_KINDS.filter((kind) => said.includes(kind));
}
