'use client';

import { clsx } from 'clsx';
import { ChevronDown } from 'lucide-react';
import { Popover } from 'radix-ui';
import type { ReactNode } from 'react';
import { OVER } from '@/components/ui/in-view';
import { Name } from '@/components/ui/name';
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
            <ChevronDown size={12} aria-hidden="true" className="shrink-0" />
          </>
        )}
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align={align}
          sideOffset={6}
          collisionPadding={12}
          aria-label={label}
          onEscapeKeyDown={(event) => event.stopPropagation()}
          {...OVER}
          className="z-30 max-h-[60dvh] w-[min(300px,calc(100vw-24px))] overflow-y-auto rounded-md border border-line-strong bg-ground px-3 py-2 text-xs shadow-xl outline-none"
        >
          {children}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
