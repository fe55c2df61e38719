import type { OpenRequest } from '@/lib/projections/open-requests';
import type { SessionFold } from '@/lib/projections/session-summary';

/** What the session projection remembers, out of a session's `memory`; nothing of a session that is new. */
export function rememberedFold(memory: { fold?: unknown } | undefined): Partial<SessionFold> {
  return (memory?.fold as Partial<SessionFold> | undefined) ?? {};
}

/** A request as its agent waits for it. */
export type AnswerableRequest = Omit<OpenRequest, 'title'>;
