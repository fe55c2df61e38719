'use client';

import { clsx } from 'clsx';
import { ChevronDown } from 'lucide';
import { type ReactNode, useRef, useState } from 'react';
import { Icon } from '@/components/ui/icon';
import { LazyPopover } from '@/components/ui/lazy-popover';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';

/** A toolbar button with a popover. Its label is the current choice. */
export function FilterPopover(props: {
  label: string;
  /** The current choice, shown instead of the label or after it. */
  chosen: string | null;
  /** Marks a setting of the agent: with its label and a border. */
  hasLabel?: boolean;
  /** Shown instead of the label. */
  icon?: ReactNode;
  align?: 'start' | 'end';
  children: ReactNode;
}) {
  const { label, chosen, hasLabel = false, icon, align = 'start', children } = props;
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        ref={button}
        type="button"
        aria-label={chosen === null ? label : `${label}: ${nameText(chosen)}`}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        title={icon === undefined ? undefined : label}
        onClick={() => setOpen(!isOpen)}
        className={clsx(
          'hit flex items-center gap-1 hover:text-ink aria-expanded:text-ink',
          chosen === null ? 'text-ink-3' : 'text-ink',
          hasLabel ? 'h-6 rounded border border-line-strong px-2 hover:border-ink' : 'max-w-[24ch]',
        )}
      >
        {icon ?? (
          <>
            {hasLabel && <span className="whitespace-nowrap text-ink-3">{label}:</span>}
            <span className="truncate">
              <Name text={chosen ?? label} />
            </span>
            <Icon of={ChevronDown} size={12} className="shrink-0" />
          </>
        )}
      </button>
      <LazyPopover
        isOpen={isOpen}
        label={label}
        button={button}
        onClose={() => setOpen(false)}
        align={align}
        className="w-[min(300px,calc(100vw-24px))] px-3 py-2 text-xs"
      >
        {children}
      </LazyPopover>
    </>
  );
}
