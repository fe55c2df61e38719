import type { Notice } from './notices';

/**
 * The words of a desktop notification without secrets: it may appear on a lock screen or a shared one. Loads the rules
 * when the first notification is due, so that they are in no page's bundle.
 */
export async function noticeText({ title, body }: Pick<Notice, 'title' | 'body'>): Promise<NoticeText> {
  try {
    const { clearedText } = await import('@/lib/redaction/outlets');
    return { title: clearedText('desktop-notice', title), body: clearedText('desktop-notice', body) };
  } catch {
    // the server that has the rules is not reachable: the words stay unsaid
    return { title: 'Something needs you', body: 'Open Interlude to see it.' };
  }
}

export interface NoticeText {
  title: string;
  body: string;
}
