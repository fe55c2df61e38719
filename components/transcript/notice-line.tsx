import type { NoticeItem } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { CircleAlert, Info, TriangleAlert } from 'lucide';
import { SessionLink } from '@/components/sessions/session-link';
import { Icon } from '@/components/ui/icon';
import { longRunClass } from '@/components/ui/long-run';
import { Words } from '@/components/ui/name';

/** A notice is a line or two; what agents put into one may be anything. */
const MOST_CHARACTERS = 4_000;

const ICON = { info: Info, warning: TriangleAlert, error: CircleAlert };
const COLOUR = { info: 'text-ink-3', warning: 'text-waiting', error: 'text-failed' };

/** Something to know at this place: records lost, a record in quarantine, the agent's end. */
export function NoticeLine({ item }: { item: NoticeItem }) {
  return (
    <p className={clsx('my-1.5 flex max-w-prose items-start gap-2 text-xs', COLOUR[item.tone])}>
      <Icon of={ICON[item.tone]} size={13} strokeWidth={1.75} className="mt-[2.5px] shrink-0" />
      <span dir="auto" className={clsx('[overflow-wrap:anywhere]', longRunClass(item.text.slice(0, MOST_CHARACTERS)))}>
        <Words text={item.text} most={MOST_CHARACTERS} />
        {item.ofSessionId !== undefined && (
          <>
            {' '}
            <SessionLink id={item.ofSessionId} />
          </>
        )}
      </span>
    </p>
  );
}
