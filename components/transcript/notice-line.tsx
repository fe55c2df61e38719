import { clsx } from 'clsx';
import { CircleAlert, Info, TriangleAlert } from 'lucide-react';
import { stripAnsi } from '@/components/ui/ansi';
import { firstPart } from '@/components/ui/first-part';
import { longRunClass } from '@/components/ui/long-run';
import type { NoticeItem } from '@/lib/protocol/read-models';

const ICON = { info: Info, warning: TriangleAlert, error: CircleAlert };
const COLOUR = { info: 'text-ink-3', warning: 'text-waiting', error: 'text-failed' };

/** Something to know at this place: records lost, a record in quarantine, the agent's end. */
export function NoticeLine({ item }: { item: NoticeItem }) {
  const Icon = ICON[item.tone];
  const text = firstPart(item.text, 4_000);
  return (
    <p className={clsx('my-1.5 flex max-w-prose items-start gap-2 text-xs', COLOUR[item.tone])}>
      <Icon size={13} strokeWidth={1.75} aria-hidden="true" className="mt-[2.5px] shrink-0" />
      <span className={clsx('[overflow-wrap:anywhere]', longRunClass(text))}>{stripAnsi(text)}</span>
    </p>
  );
}
