'use client';

import type { AgentSummary, SessionSummary, TranscriptPage } from '@interlude/protocol/read-models';
import { createContext, type ReactNode, type RefObject, useContext, useMemo, useRef } from 'react';
import { useAgentSummary } from '@/components/agents/use-agents';
import type { ComposerHandle } from '@/components/composer/composer';
import { useSelected } from '@/components/live/use-folded';
import { useSession } from '@/components/sessions/use-sessions';
import { useTasksAfterRemoval } from '@/components/tasks/use-tasks';
import type { TranscriptHandle } from '@/components/transcript/transcript';
import type { TranscriptStore } from '@/components/transcript/transcript-store';
import { useTranscript } from '@/components/transcript/transcript-store';

interface SessionScope {
  sessionId: string;
  transcript: TranscriptStore;
  /** How reading the transcript goes. */
  query: ReturnType<typeof useTranscript>['query'];
  /** What the parts of the page ask of each other. */
  composer: RefObject<ComposerHandle | null>;
  shown: RefObject<TranscriptHandle | null>;
}

const ScopeContext = createContext<SessionScope | null>(null);

/** The session whose page this is. Each part of the page takes of its stores what it shows, and renders again for that. */
export function SessionScopeProvider(props: {
  sessionId: string;
  initial: TranscriptPage | null;
  children: ReactNode;
}) {
  const { sessionId, initial, children } = props;
  const { store: transcript, query } = useTranscript(sessionId, initial);
  useTasksAfterRemoval(
    sessionId,
    useSelected(transcript, ({ value }) => value?.removed?.upTo),
  );
  const composer = useRef<ComposerHandle>(null);
  const shown = useRef<TranscriptHandle>(null);
  const scope = useMemo(() => ({ sessionId, transcript, query, composer, shown }), [sessionId, transcript, query]);
  return <ScopeContext value={scope}>{children}</ScopeContext>;
}

export function useSessionScope(): SessionScope {
  const scope = useContext(ScopeContext);
  if (scope === null) throw new Error('SessionScopeProvider is missing above this component');
  return scope;
}

/** The rows of the session and of its agent; of the latter null until it is known. */
export function useSessionRows(): { session: SessionSummary; agent: AgentSummary | null } {
  const session = useSession(useSessionScope().sessionId);
  return { session, agent: useAgentSummary(session.agentId) };
}

/** @param select gives the same until what it is about has changed */
export function useTranscriptState<Selected>(select: (state: TranscriptStore['value']) => Selected): Selected {
  const { transcript } = useSessionScope();
  return useSelected(transcript, ({ value }) => select(value));
}
