import { type AttachmentRef, attachmentPath } from '@interlude/protocol/attachments';
import { apiFetch } from '@/components/live/api-fetch';

/** Nobody waits for it. */
const WITHIN_MS = 30_000;

/**
 * Whether the server still has the bytes: what no message names it forgets after a day. They are not sent for that.
 * @returns null if that can't be told now
 */
export async function isKept(sessionId: string, { hash }: AttachmentRef): Promise<boolean | null> {
  try {
    const { status, body } = await apiFetch(attachmentPath(hash, sessionId), {
      headers: { 'if-none-match': `"${hash}"` },
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    await body?.cancel();
    if (status === 304 || status === 200) return true;
    return status === 404 ? false : null;
  } catch {
    return null;
  }
}
