'use client';

import { clsx } from 'clsx';
import { ChevronDown } from 'lucide';
import { Popover } from 'radix-ui';
import type { ReactNode } from 'react';
import { Icon } from '@/components/ui/icon';
import { Name } from '@/components/ui/name';
import { PopoverPanel } from '@/components/ui/popover-panel';
import { nameText } from '@/components/ui/verbatim';

/** A button in the toolbar with what it opens. It says by itself what is chosen. */
export function FilterPopover(props: {
  label: string;
  /** What is chosen, shown in the place of the label. */
  chosen: string | null;
  onOpen?: () => void;
  /** In the place of the label. */
  icon?: ReactNode;
  align?: 'start' | 'end';
  children: ReactNode;
}) {
  const { label, chosen, onOpen, icon, align = 'start', children } = props;
  return (
    <Popover.Root onOpenChange={(open) => open && onOpen?.()}>
      <Popover.Trigger
        aria-label={chosen === null ? label : `${label}: ${nameText(chosen)}`}
        title={icon === undefined ? undefined : label}
        className={clsx(
          'hit flex max-w-[24ch] items-center gap-1 hover:text-ink data-[state=open]:text-ink',
          chosen === null ? 'text-ink-3' : 'text-ink',
        )}
      >
        {icon ?? (
          <>
            <span className="truncate">
              <Name text={chosen ?? label} />
            </span>
            <Icon of={ChevronDown} size={12} className="shrink-0" />
          </>
        )}
      </Popover.Trigger>
      <PopoverPanel align={align} aria-label={label} className="w-[min(300px,calc(100vw-24px))] px-3 py-2 text-xs">
        {children}
      </PopoverPanel>
    </Popover.Root>
  );
}
