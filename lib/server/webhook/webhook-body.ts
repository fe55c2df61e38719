import type { InboxItem, WebhookBody } from '@interlude/protocol/inbox';
import type { InboxKind } from '@interlude/protocol/inbox-kinds';
import { inboxItemPath } from '@interlude/protocol/inbox-rules';
import { redactedFor } from '@interlude/protocol/redaction/outlets';
import { truncateText } from '@interlude/protocol/text';

const SAID: Record<InboxKind, string> = {
  permission: 'asks for a permission',
  question: 'asks a question',
  'overdue-reply': 'owes a reply for too long',
  failure: 'has failed',
  undelivered: 'has not been given the result of a task',
  'lost-contact': 'is not heard of any more',
  'hook-failure': 'has hooks that fail',
  'delivery-gap': 'has records missing',
  parked: 'has records that belong to no session',
};
const MOST_OF_TITLE = 300;
const MOST_OF_NAME = 100;

/** What is told of an item that came up. */
export function openedBody(item: InboxItem, publicUrl: string | null): WebhookBody {
  const { id, kind, agentId, sessionId, title, count, since } = item;
  const url = publicUrl === null ? null : `${publicUrl}${inboxItemPath(item)}`;
  const said = `${shown(agentId, MOST_OF_NAME)} ${SAID[kind]}`;
  // redacted before it is truncated: half of a secret is known for one no more
  const about = title === null ? '' : `: ${shown(redactedFor('webhook', title), MOST_OF_TITLE)}`;
  const text = `${said}${about}${url === null ? '' : ` <${url}|Open>`}`;
  return {
    text,
    interlude: { type: 'inbox.opened', item: { id, kind, agentId, sessionId, title, count, since }, url },
  };
}

export function testBody(publicUrl: string | null): WebhookBody {
  const url = publicUrl === null ? null : `${publicUrl}/inbox`;
  const text = `This is a test of Interlude’s webhook.${url === null ? '' : ` <${url}|Open the inbox>`}`;
  return { text, interlude: { type: 'test', item: null, url } };
}

/** On one line, and without what Slack would act on: its links, mentions and commands begin with these signs. */
function shown(text: string, most: number): string {
  const line = truncateText(text.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim(), most);
  return line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
