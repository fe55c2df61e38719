import type { OpenRequest } from '@interlude/protocol/projections/open-requests';
import type { SessionFold } from '@interlude/protocol/projections/session-summary';

/** What the session projection remembers, out of a session's `memory`; empty for a new session. */
export function rememberedFold(memory: { fold?: unknown } | undefined): Partial<SessionFold> {
  return (memory?.fold as Partial<SessionFold> | undefined) ?? {};
}

/** A request that can be answered. */
export type AnswerableRequest = Omit<OpenRequest, 'title'>;
