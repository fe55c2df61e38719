'use client';

import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { useConnectionState } from './live-provider';

const wordsCode = new CodeOnDemand(async () => (await import('./signed-out-words')).SignedOutWords);

export function SignedOutNotice() {
  const { status } = useConnectionState();
  return status === 'signed-out' && <OnDemand code={wordsCode} name="The sign-in notice" props={{}} />;
}
