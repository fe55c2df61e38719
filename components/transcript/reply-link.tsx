'use client';

import type { Item, MessageItem } from '@interlude/protocol/read-models';
import { truncateText } from '@interlude/protocol/text';
import { CornerDownRight } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { JumpLink } from '@/components/ui/jump';
import { Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';
import { useTranscriptSlots } from './transcript-slots';

export const messageAnchor = (id: string) => `message-${id}`;

/**
 * The answered messages that a reader can't infer. Excludes the message right before and messages that the previous
 * answer names.
 *
 * @returns ids joined by spaces, so that equal lists are equal strings
 */
export function explicitReplies(items: readonly Item[], at: number): string {
  const item = items[at];
  if (item?.kind !== 'message' || item.replyTo.length === 0) return '';
  const plain = new Set<string>();
  for (let before = at - 1; before >= 0; before--) {
    const other = items[before] as Item;
    if (other.kind !== 'message') continue;
    if (other.role === item.role) for (const id of other.replyTo) plain.add(id);
    else plain.add(other.id);
    if (other.role === 'assistant') break;
  }
  return item.replyTo.filter((id) => !plain.has(id)).join(' ');
}

const MAX_LINKS = 20;

export function ReplyLink({ answers }: { answers: string }) {
  const slots = useTranscriptSlots();
  if (answers === '') return null;
  return (
    <p className="flex flex-wrap items-baseline gap-x-2 text-2xs text-ink-3">
      {answers.split(' ', MAX_LINKS).map((id) => (
        <JumpLink key={id} anchor={messageAnchor(id)} className="flex min-w-0 items-baseline gap-1 hover:text-ink">
          <Icon of={CornerDownRight} size={11} className="relative top-[1.5px] shrink-0" />
          <span className="truncate underline decoration-line-strong underline-offset-2">
            in reply to{' '}
            <bdi>
              <Words text={slots.quoteOf(id) ?? 'an earlier message'} />
            </bdi>
          </span>
        </JumpLink>
      ))}
    </p>
  );
}

/** A message's first words, quoted in links to it. */
export function quote(item: Pick<MessageItem, 'text'>): string {
  const line = toPlainText(item.text);
  return line.length > 60 ? `${truncateText(line, 60)}…` : line;
}
