import type { Attachment } from './field-schemas';
import { fieldsOf, listOf, textOf } from './fields';
import { MAX_MESSAGE_ATTACHMENTS } from './limits';
import { truncateText } from './text';

/** An attachment as a message names it. */
export type AttachmentRef = Pick<Attachment, 'hash' | 'name'>;

/** Values of a status record's `attachments`. */
export const ATTACHMENT_KINDS = ['image', 'file'] as const;
export type AttachmentKind = (typeof ATTACHMENT_KINDS)[number];

export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
const FILE_TYPES = ['text/*', 'application/json', 'application/pdf'] as const;
/** Accepted media types, as UI and errors list them. */
export const ATTACHMENT_TYPES: readonly string[] = [...IMAGE_TYPES, ...FILE_TYPES];

export function attachmentKind(mediaType: string): AttachmentKind {
  return isImageType(mediaType) ? 'image' : 'file';
}

export function isImageType(mediaType: string): boolean {
  return (IMAGE_TYPES as readonly string[]).includes(mediaType);
}

/** True for types whose bytes are UTF-8 text. */
export function isTextType(mediaType: string): boolean {
  return /^text\/[a-z0-9][a-z0-9.+-]{0,99}$/.test(mediaType) || mediaType === 'application/json';
}

/** Text for a message that has only files, so that readers of the text alone see the files. */
export function attachmentNames(attachments: readonly Pick<AttachmentRef, 'name'>[]): string {
  return attachments.map(({ name }) => name).join(', ');
}

export function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

/** The path of the bytes below `/api/v1`. @param name file name for the download, if not the original */
export function attachmentPath(hash: string, sessionId: string, name?: string): string {
  const query = new URLSearchParams({ session: sessionId, ...(name === undefined ? {} : { name }) });
  return `/attachments/${hash}?${query}`;
}

/** Longest name of an attachment, in UTF-16 code units. */
export const MAX_ATTACHMENT_NAME = 255;

/** Reads an untrusted list; malformed entries are dropped. */
export function readAttachments(list: unknown): Attachment[] {
  return listOf(list)
    .slice(0, MAX_MESSAGE_ATTACHMENTS)
    .flatMap((one) => {
      const { hash, bytes, ...fields } = fieldsOf(one);
      const [name, mediaType] = [textOf(fields.name), textOf(fields.mediaType)];
      const fits = isHash(hash) && typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes >= 0;
      if (!fits || name === null || mediaType === null || mediaType.length > MAX_ATTACHMENT_NAME) return [];
      return [{ hash, name: truncateText(name, MAX_ATTACHMENT_NAME), mediaType, bytes }];
    });
}

/** The attachment kinds that an agent supports. @param status untrusted, as the runner sent it */
export function supportedAttachments(status: Record<string, unknown> | null): AttachmentKind[] {
  const listed = listOf(status?.attachments);
  return ATTACHMENT_KINDS.filter((kind) => listed.includes(kind));
}
