'use client';

import { CodeOnDemand } from '@/components/ui/on-demand';
import { WhenIdlePart } from './when-idle-part';

const badgeCode = new CodeOnDemand<object>(async () => (await import('@/components/inbox/inbox-badge')).InboxBadge);

/** How many items need somebody. */
export function InboxCount() {
  return <WhenIdlePart code={badgeCode} name="The count" />;
}
