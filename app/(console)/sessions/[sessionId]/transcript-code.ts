import { CodeOnDemand } from '@/components/ui/on-demand';

/** The largest part of a session's page, and the last one needed for interaction. Every page preloads it. */
export const transcriptCode = new CodeOnDemand(async () => {
  if (typeof window === 'undefined') {
    await (await import('@/components/ui/markdown/highlight-at-once')).loadHighlighter();
  }
  return (await import('./session-transcript')).SessionTranscript;
});
