'use client';

import type { TranscriptPage } from '@interlude/protocol/read-models';
import { useEffect } from 'react';
import { useFolded, useSelected } from '@/components/live/use-folded';
import { TranscriptStore } from './transcript-store';

/** A session's transcript, kept current. @param initial the part that came with the page, if any did */
export function useTranscript(sessionId: string, initial: TranscriptPage | null) {
  const transcript = useFolded(
    ['transcript', sessionId],
    `session:${sessionId}`,
    () => new TranscriptStore(sessionId, initial),
  );
  // An event moved something out of a turn that is not loaded; only the server can tell what it was.
  const isIncomplete = useSelected(transcript.store, ({ value }) => value?.incomplete ?? false);
  const { refetch } = transcript.query;
  useEffect(() => {
    if (isIncomplete) void refetch();
  }, [isIncomplete, refetch]);
  return transcript;
}
