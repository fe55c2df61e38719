'use client';

import { X } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { Words } from '@/components/ui/name';

/** What the message that is being written answers. */
export function ReplyQuote({ quote, onRemove }: { quote: string; onRemove: () => void }) {
  return (
    <p className="flex items-center gap-2 pb-1 text-ink-3 text-xs">
      <span className="min-w-0 truncate">
        In reply to “
        <bdi>
          <Words text={quote} />
        </bdi>
        ”
      </span>
      <button type="button" aria-label="Don’t reply to it" onClick={onRemove} className="hit shrink-0 hover:text-ink">
        <Icon of={X} size={13} />
      </button>
    </p>
  );
}
