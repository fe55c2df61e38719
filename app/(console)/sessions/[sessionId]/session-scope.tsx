'use client';

import { BASE_PATH } from '@interlude/protocol/base-path.mjs';
import type { AgentSummary, SessionSummary, Task, TranscriptPage } from '@interlude/protocol/read-models';
import { createContext, type ReactNode, type RefObject, useContext, useMemo, useRef } from 'react';
import { useAgentSummary } from '@/components/agents/use-agents';
import type { ComposerHandle } from '@/components/composer/composer';
import { useSelected } from '@/components/live/use-folded';
import { useSession } from '@/components/sessions/use-sessions';
import { TaskIndex } from '@/components/tasks/task-index';
import { namedTask, taskOutcome } from '@/components/tasks/task-words';
import { useTasks, useTasksAfterRemoval } from '@/components/tasks/use-tasks';
import type { TranscriptHandle } from '@/components/transcript/transcript';
import type { TranscriptSlots } from '@/components/transcript/transcript-slots';
import { type TranscriptStore, useTranscript } from '@/components/transcript/transcript-store';
import { addressWith } from '@/components/ui/jump';

interface SessionScope {
  sessionId: string;
  /** The configured URL of this dashboard; null if there is none. */
  publicUrl: string | null;
  transcript: TranscriptStore;
  /** State of the request that loads the transcript. */
  query: ReturnType<typeof useTranscript>['query'];
  composer: RefObject<ComposerHandle | null>;
  shown: RefObject<TranscriptHandle | null>;
}

const ScopeContext = createContext<SessionScope | null>(null);

/** Provides the session's stores. Each part of the page subscribes to what it shows. */
export function SessionScopeProvider(props: {
  sessionId: string;
  initial: TranscriptPage | null;
  publicUrl: string | null;
  children: ReactNode;
}) {
  const { sessionId, initial, publicUrl, children } = props;
  const { store: transcript, query } = useTranscript(sessionId, initial);
  useTasksAfterRemoval(
    sessionId,
    useSelected(transcript, ({ value }) => value?.removed?.upTo),
  );
  const composer = useRef<ComposerHandle>(null);
  const shown = useRef<TranscriptHandle>(null);
  const scope = useMemo(
    () => ({ sessionId, publicUrl, transcript, query, composer, shown }),
    [sessionId, publicUrl, transcript, query],
  );
  return <ScopeContext value={scope}>{children}</ScopeContext>;
}

export function useSessionScope(): SessionScope {
  const scope = useContext(ScopeContext);
  if (scope === null) throw new Error('SessionScopeProvider is missing');
  return scope;
}

/** The rows of the session and its agent; the agent is null until loaded. */
export function useSessionRows(): { session: SessionSummary; agent: AgentSummary | null } {
  const session = useSession(useSessionScope().sessionId);
  return { session, agent: useAgentSummary(session.agentId) };
}

/** @param select returns a stable value until its subject changes */
export function useTranscriptState<Selected>(select: (state: TranscriptStore['value']) => Selected): Selected {
  const { transcript } = useSessionScope();
  return useSelected(transcript, ({ value }) => select(value));
}

/**
 * URL of this page at an anchor, for other people: at the configured URL if there is one, because the address of this
 * browser may be a private name of this machine.
 */
export function pageUrl(publicUrl: string | null, anchor: string): string {
  const { pathname, search, hash, href } = addressWith(location.href, anchor);
  return publicUrl === null ? href : `${publicUrl}${pathname.slice(BASE_PATH.length)}${search}${hash}`;
}

/** The session's tasks with display names. */
export function useNamedTasks() {
  const { tasks, omitted } = useTasks(useSessionScope().sessionId);
  return { tasks: useMemo(() => tasks.map(namedTask), [tasks]), omitted };
}

/** Looks up the tasks that turns are named after. */
export function useTaskNames(tasks: readonly Task[]): Pick<TranscriptSlots, 'findTask' | 'outcomeOf'> {
  return useMemo(() => {
    const index = new TaskIndex(tasks);
    return { findTask: (ref) => index.find(ref), outcomeOf: taskOutcome };
  }, [tasks]);
}
