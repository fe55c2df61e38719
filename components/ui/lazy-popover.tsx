'use client';

import type { ComponentProps } from 'react';
import { CodeOnDemand, OnDemand, usePreload } from './on-demand';
import type { ButtonPopover } from './popover';

const popoverCode = new CodeOnDemand(async () => (await import('./popover')).ButtonPopover);

/** A `ButtonPopover` whose code loads when the page is idle. Stays mounted while the popover is closed. */
export function LazyPopover({ isOpen, ...props }: { isOpen: boolean } & ComponentProps<typeof ButtonPopover>) {
  usePreload(popoverCode);
  return isOpen && <OnDemand code={popoverCode} name={props.label} props={props} />;
}
