import type { OpenRequest } from '@/lib/projections/open-requests';
import type { SessionFold } from '@/lib/projections/session-summary';

/** What the session projection remembers, out of a session's `memory`; empty for a new session. */
export function rememberedFold(memory: { fold?: unknown } | undefined): Partial<SessionFold> {
  return (memory?.fold as Partial<SessionFold> | undefined) ?? {};
}

/** A request that can be answered. */
export type AnswerableRequest = Omit<OpenRequest, 'title'>;
