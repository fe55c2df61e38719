import { CodeOnDemand } from '@/components/ui/on-demand';

/** The largest part of a session's page, and the last one needed for interaction. Every page preloads it. */
export const transcriptCode = new CodeOnDemand(async () => (await import('./session-transcript')).SessionTranscript);
