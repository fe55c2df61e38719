'use client';

import { Popover } from 'radix-ui';
import type { RefObject } from 'react';
import { personId } from './browser-storage';
import { OVERLAY } from './in-view';
import { Link } from './link';
import { ButtonPopover } from './popover';
import { TERMS, type TermName, termAnchor } from './terms';

const WIDTH = 'w-[min(320px,calc(100vw-24px))] px-3 py-2 text-left text-xs';

/** The explanation of a term below its button. Loaded on demand, because the first load has a size limit. */
export function TermPanel(props: {
  of: TermName;
  /** Of the tooltip. */
  id: string;
  button: RefObject<HTMLElement | null>;
  isTooltip: boolean;
  onClose: () => void;
}) {
  const { of, id, button, isTooltip, onClose } = props;
  const { title, text } = TERMS[of];
  if (!isTooltip) {
    return (
      <ButtonPopover label={title} button={button} onClose={onClose} className={WIDTH}>
        <p className="text-ink-2">{text}</p>
        {/* Embeds can't open `/help`. */}
        {personId() !== null && (
          <Link href={`/help#${termAnchor(of)}`} className="mt-1 inline-block text-ink-3 underline hover:text-ink">
            See all terms
          </Link>
        )}
      </ButtonPopover>
    );
  }
  return (
    <Popover.Root open onOpenChange={onClose}>
      <Popover.Anchor virtualRef={button as RefObject<HTMLElement>} />
      <Popover.Portal>
        <Popover.Content
          id={id}
          role="tooltip"
          align="start"
          sideOffset={6}
          collisionPadding={12}
          onOpenAutoFocus={(event) => event.preventDefault()}
          onCloseAutoFocus={(event) => event.preventDefault()}
          // The button itself decides what a press does.
          onInteractOutside={(event) => event.preventDefault()}
          {...OVERLAY}
          className={`${WIDTH} pointer-events-none z-40 rounded-md border border-line-strong bg-ground text-ink-2 shadow-xl`}
        >
          {text}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
