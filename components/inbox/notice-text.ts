import type { Notice } from './notices';

/**
 * The words of a desktop notification without secrets: it may appear on a lock screen or a shared one. Loads the rules
 * when the first notification is due, so that they are in no page's bundle.
 */
export async function noticeText({ title, body }: Pick<Notice, 'title' | 'body'>): Promise<NoticeText> {
  try {
    const { redactedFor } = await import('@interlude/protocol/redaction/redact-model');
    return { title: redactedFor('desktop-notice', title), body: redactedFor('desktop-notice', body) };
  } catch {
    // without the rules nothing can be redacted, so the notification names nothing
    return { title: 'Something needs you', body: 'Open Interlude to see it.' };
  }
}

interface NoticeText {
  title: string;
  body: string;
}
