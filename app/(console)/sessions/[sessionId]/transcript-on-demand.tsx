'use client';

import { measureMarkup } from '@/components/transcript/server-markup';
import { CodeOnDemand, ServedOnDemand } from '@/components/ui/on-demand';

/** The largest part of a session's page, and the last one needed for interaction. */
export const transcriptCode = new CodeOnDemand(async () => (await import('./session-transcript')).SessionTranscript);

/** A session's transcript: server markup until its code has loaded. */
export function TranscriptOnDemand(props: { nonce: string | undefined; sentCount: number; onEnd: () => void }) {
  const { nonce, sentCount, onEnd } = props;
  return (
    <ServedOnDemand
      code={transcriptCode}
      name="The live transcript"
      props={{ nonce, sentCount, painted: null }}
      read={(markup) => ({ painted: measureMarkup(markup) })}
      wait={
        <p role="status" className="min-h-0 flex-1 px-6 py-4 text-ink-3 text-xs sm:pl-[84px]">
          Loading the transcript…
        </p>
      }
      onEnd={onEnd}
    />
  );
}
