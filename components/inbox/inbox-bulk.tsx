'use client';

import { plural } from '@/components/ui/duration';
import { ActionButton, type Mark, SnoozeMenu } from './item-actions';

/** What can be made of all selected items at once. */
export function InboxBulk(props: { count: number; onMark: (mark: Mark) => void; onNone: () => void }) {
  const { count, onMark, onNone } = props;
  const about = `${plural(count, 'item')} selected`;
  return (
    <section
      aria-label={about}
      className="sticky bottom-0 flex flex-wrap items-baseline gap-x-5 gap-y-1 border-line-strong border-t bg-ground py-3 text-xs"
    >
      <span className="tabular font-medium">{about}</span>
      <ActionButton about={about} label="Seen" onPress={() => onMark('seen')} />
      <ActionButton about={about} label="Claim" onPress={() => onMark('claimed')} />
      <SnoozeMenu about={about} onSnooze={(snoozedUntil) => onMark({ snoozedUntil })} />
      <ActionButton about={about} label="Select none" onPress={onNone} />
    </section>
  );
}
