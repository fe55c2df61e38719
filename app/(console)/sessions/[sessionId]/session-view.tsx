'use client';

import { clsx } from 'clsx';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { type AgentRow, useAgentSummary } from '@/components/agents/use-agents';
import type { ComposerHandle } from '@/components/composer/composer';
import { useOutgoing } from '@/components/composer/outgoing-provider';
import { isShown, withOutgoing } from '@/components/composer/with-outgoing';
import { ActionsProvider } from '@/components/live/actions';
import { useOwedMessages } from '@/components/obligations/use-obligations';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { useSession } from '@/components/sessions/use-sessions';
import { TaskPanel } from '@/components/tasks/task-panel';
import { namedTask } from '@/components/tasks/task-words';
import { useTasks } from '@/components/tasks/use-tasks';
import { RequestsElsewhere } from '@/components/transcript/requests-elsewhere';
import { Transcript, type TranscriptHandle } from '@/components/transcript/transcript';
import { TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { TranscriptWait } from '@/components/transcript/transcript-wait';
import { useTranscript } from '@/components/transcript/use-transcript';
import { type Jump, JumpProvider } from '@/components/ui/jump';
import { TimeLockProvider } from '@/components/ui/time-lock';
import type { SessionDetail, TaskList, TranscriptPage } from '@/lib/protocol/read-models';
import { refusalOf } from '@/lib/protocol/takes';
import { LogPanel } from './log-panel';
import { endOf, SessionFoot } from './session-foot';
import { SessionHeader } from './session-header';
import { SessionLiveness } from './session-liveness';
import { useSessionActions } from './use-session-actions';
import { useSessionLog } from './use-session-log';
import { useSessionSlots } from './use-session-slots';

export interface SessionStart {
  session: SessionDetail;
  agent: AgentRow | null;
  tasks: { list: TaskList; whole: boolean };
  /** Null where it is too much to come with the page. */
  transcript: TranscriptPage | null;
}

interface SessionViewProps {
  sessionId: string;
  /** JSON of a SessionStart: as an object it would come without what an agent calls `__proto__`. */
  initial: string;
  nonce: string | undefined;
}

/** A session's page: its header, its transcript, where to write, and on wide screens its tasks beside it. */
export function SessionView({ sessionId, initial: json, nonce }: SessionViewProps) {
  const [initial] = useState(() => JSON.parse(json) as SessionStart);
  const session = useSession(sessionId, initial.session).data?.session ?? initial.session.session;
  const agent = useAgentSummary(session.agentId, initial.agent ?? undefined).data?.agent ?? null;
  const { tasks: taskRows, omitted } = useTasks(sessionId, initial.tasks).data ?? initial.tasks.list;
  const tasks = useMemo(() => taskRows.map(namedTask), [taskRows]);
  const transcript = useTranscript(sessionId, initial.transcript ?? undefined);
  const { messages, queue } = useOutgoing(sessionId);
  const state = transcript.data;
  const shown = useMemo(() => state && withOutgoing(state, messages), [state, messages]);
  const composer = useRef<ComposerHandle>(null);
  const transcriptHandle = useRef<TranscriptHandle>(null);
  const ended = endOf(session, agent, state?.turns);
  const owed = useOwedMessages(session);
  const slots = useSessionSlots({
    sessionId,
    tasks,
    turns: shown?.turns,
    away: agent?.connection === 'away',
    canWrite: ended === null && refusalOf(agent?.status ?? null, 'message') === null,
    owed,
    composer,
  });
  const actions = useSessionActions(sessionId, state?.turns, messages);
  const { panel, ...log } = useSessionLog({
    sessionId,
    turns: shown?.turns,
    tasks,
    slots,
    transcript: transcriptHandle,
  });
  const [showsTasks, setShowsTasks] = useState(false);
  const [sentCount, setSentCount] = useState(0);

  // What the transcript shows has arrived: nobody needs to send it again.
  const turns = state?.turns;
  useEffect(() => {
    if (turns !== undefined && messages.length > 0) queue?.settle((message) => isShown(turns, message));
  }, [queue, turns, messages]);

  // The panel stands outside the transcript, which alone knows how to reach a place that is not loaded: through the
  // address, which it listens to.
  const jump = useCallback<Jump>((anchor) => {
    if (!matchMedia('(min-width: 1024px)').matches) setShowsTasks(false);
    location.hash = encodeURIComponent(anchor);
  }, []);

  return (
    <ActionsProvider store={actions.store}>
      <SessionLiveness session={session} agent={agent}>
        <RequestBoardProvider>
          <TimeLockProvider value={log.lock}>
            <main className="relative flex h-full min-h-0 flex-col">
              <div inert={panel.open && panel.covers} className="flex min-h-0 flex-1">
                <div className={clsx('flex min-h-0 min-w-0 flex-1 flex-col', showsTasks && 'max-lg:hidden')}>
                  <SessionHeader
                    session={session}
                    taskCount={tasks.length}
                    onTasks={() => setShowsTasks(!showsTasks)}
                    log={panel}
                  />
                  {shown && transcript.isError && (
                    <p className="flex gap-3 px-5 py-2 text-failed text-xs">
                      {transcript.error.message}
                      <button type="button" onClick={() => transcript.refetch()} className="underline">
                        Try again
                      </button>
                    </p>
                  )}
                  {shown === undefined && (
                    <TranscriptWait
                      error={transcript.failureReason}
                      isLoading={transcript.isFetching || transcript.isPending}
                      retry={() => transcript.refetch()}
                    />
                  )}
                  {shown && (
                    <TranscriptSlotsProvider value={slots}>
                      <RequestsElsewhere turns={shown.turns}>
                        <Transcript
                          state={shown}
                          nonce={nonce}
                          sentCount={sentCount}
                          loadOlder={transcript.loadOlder}
                          loadingOlder={transcript.loadingOlder}
                          olderError={transcript.olderError}
                          seek={transcript.seek}
                          handle={transcriptHandle}
                        />
                      </RequestsElsewhere>
                    </TranscriptSlotsProvider>
                  )}
                  <JumpProvider jump={jump}>
                    <SessionFoot
                      session={session}
                      agent={agent}
                      turns={turns}
                      ended={ended}
                      composer={composer}
                      toast={actions.toast}
                      onCloseToast={actions.closeToast}
                      onSend={(text, replyTo) => {
                        queue?.post(text, replyTo);
                        setSentCount((count) => count + 1);
                      }}
                      onLeave={() => transcriptHandle.current?.focus()}
                    />
                  </JumpProvider>
                </div>
                {tasks.length > 0 && (
                  <div
                    className={clsx(
                      'min-h-0 flex-col border-l 2xl:flex 2xl:w-[320px] 2xl:shrink-0',
                      showsTasks ? 'flex w-full lg:w-[280px] lg:shrink-0' : 'hidden',
                    )}
                  >
                    {showsTasks && (
                      <button
                        type="button"
                        onClick={() => setShowsTasks(false)}
                        className="px-5 pt-3 text-left text-ink-3 text-xs underline hover:text-ink lg:hidden"
                      >
                        Back to the transcript
                      </button>
                    )}
                    <JumpProvider jump={jump}>
                      <TaskPanel tasks={tasks} omitted={omitted} />
                    </JumpProvider>
                  </div>
                )}
              </div>
              {panel.open && (
                <LogPanel
                  panel={panel}
                  agentId={session.agentId}
                  agent={agent}
                  span={log.span}
                  onLineClick={log.onLineClick}
                >
                  {log.context}
                </LogPanel>
              )}
            </main>
          </TimeLockProvider>
        </RequestBoardProvider>
      </SessionLiveness>
    </ActionsProvider>
  );
}
