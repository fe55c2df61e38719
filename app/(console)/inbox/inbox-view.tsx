'use client';

import type { InboxList } from '@interlude/protocol/inbox';
import { InboxPage } from '@/components/inbox/inbox-page';
import { CodeOnDemand } from '@/components/ui/on-demand';

const requestCode = new CodeOnDemand(async () => (await import('./request-here')).RequestHere);
const previewCode = new CodeOnDemand(async () => (await import('./inbox-preview')).InboxPreview);

/** The inbox, with requests rendered as in transcripts. */
export function InboxView({ initial }: { initial: InboxList }) {
  return <InboxPage initial={initial} requestCode={requestCode} previewCode={previewCode} />;
}
