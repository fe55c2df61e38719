'use client';

import type { MessageItem, SessionSummary, ToolCallItem, Turn } from '@interlude/protocol/read-models';
import { canRetry } from '@interlude/protocol/sending';
import { hasCrashed } from '@interlude/protocol/session-predicates';
import { useIsFetching, useQueryClient } from '@tanstack/react-query';
import { clsx } from 'clsx';
import { type ReactNode, useEffect, useEffectEvent, useMemo } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { useAgentSummary } from '@/components/agents/use-agents';
import { useAnswerStore } from '@/components/inbox/item-request';
import { RetryButton } from '@/components/inbox/retry-here';
import { ActionsProvider } from '@/components/live/actions';
import { useFleet } from '@/components/live/use-fleet';
import { useSelected } from '@/components/live/use-folded';
import { ObservationTable, StateReason } from '@/components/sessions/evidence-popover';
import { glyphOf, sessionTitle } from '@/components/sessions/session-labels';
import { TaskOutcome } from '@/components/tasks/task-outcome';
import { TaskOutputPart } from '@/components/tasks/task-output';
import { orderTasks } from '@/components/tasks/task-panel';
import { TaskStop } from '@/components/tasks/task-stop';
import { namedTask, taskFont } from '@/components/tasks/task-words';
import { useTasks } from '@/components/tasks/use-tasks';
import { messageAnchor } from '@/components/transcript/reply-link';
import { ToolCallLine } from '@/components/transcript/tool-call-line';
import { useTranscript } from '@/components/transcript/transcript-store';
import { RecordAgo } from '@/components/ui/day';
import { Glyph } from '@/components/ui/glyph';
import { OVERLAY } from '@/components/ui/in-view';
import { Link } from '@/components/ui/link';
import { Markdown } from '@/components/ui/markdown/markdown';
import { Words } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import { RequestHere } from './inbox/request-here';
import { requestRevision, useOpenRequests } from './open-requests';
import { SessionLiveness } from './session-liveness';
import { SessionPlace } from './sessions/[sessionId]/session-facts';

/** The last message is in one of these turns, else its start is shown. */
const TURNS = 2;
/** Characters shown of the last message. */
const MAX_MESSAGE = 700;
const MAX_TASKS = 3;
/** Requests for the outputs of tasks. */
const OUTPUTS = { queryKey: ['task-output'] };

interface PreviewBodyProps {
  sessionId: string;
  onReady: () => void;
  /** False where the list beside it answers requests. */
  hasRequests?: boolean;
}

/** A session's state with evidence, its open request, last message and running tasks. */
export function PreviewBody({ sessionId, ...props }: PreviewBodyProps) {
  const session = useFleet(({ sessions }) => sessions.get(sessionId));
  return session === undefined ? null : <Preview session={session} {...props} />;
}

function Preview(props: Omit<PreviewBodyProps, 'sessionId'> & { session: SessionSummary }) {
  const { session, onReady, hasRequests = true } = props;
  const { id } = session;
  const agent = useAgentSummary(session.agentId);
  const mayAct = useMayAct();
  const actions = useAnswerStore(id);
  const { store, query } = useTranscript(id, null, TURNS);
  const message = useSelected(store, ({ value }) => lastMessage(value?.turns ?? []));
  const call = useSelected(store, ({ value }) => runningCall(value?.turns ?? []));
  const { requests, isRead } = useOpenRequests({ session: id }, requestRevision(session), 1);
  const hasTasks = useFleet(({ tasks }) => session.runningTaskCount === 0 || tasks.isRead(id));
  const isReady = isRead && (query.isSuccess || query.isError);
  const queries = useQueryClient();
  const isComplete = useIsFetching(OUTPUTS) === 0 && isReady && hasTasks;
  const ready = useEffectEvent(onReady);
  useEffect(() => {
    if (!isComplete) return;
    // The outputs of the tasks in this render start to load after it.
    const timer = setTimeout(() => queries.isFetching(OUTPUTS) === 0 && ready());
    return () => clearTimeout(timer);
  }, [queries, isComplete]);
  const path = `/sessions/${encodeURIComponent(id)}`;
  return (
    <ActionsProvider store={actions}>
      <SessionLiveness session={session} agent={agent}>
        <header
          {...OVERLAY}
          className="sticky top-0 z-10 flex h-12 items-center gap-2.5 border-line border-b bg-ground px-6"
        >
          <Glyph name={glyphOf(session)} />
          <h2
            dir="auto"
            className="min-w-0 flex-1 truncate font-medium text-md"
            title={nameText(sessionTitle(session))}
          >
            <Words text={sessionTitle(session)} />
          </h2>
          <Link href={path} prefetch={false} className="hit shrink-0 text-ink-2 text-xs hover:text-ink hover:underline">
            Open session
          </Link>
        </header>
        <div className="px-6 pt-3 pb-8">
          <StateReason session={session} />
          {session.stateReason !== null && session.pendingRequestCount === 0 && !hasCrashed(session) && (
            <p dir="auto" className="mt-1 line-clamp-3 [overflow-wrap:anywhere]">
              <Words text={session.stateReason} />
            </p>
          )}
          <p className="mt-1 flex flex-wrap items-baseline gap-x-3 text-ink-3 text-xs">
            <SessionPlace session={session} agent={agent} hasLinks />
          </p>
          {mayAct && canRetry(session, agent) && (
            <div className="mt-3">
              <RetryButton sessionId={id} />
            </div>
          )}
          {isReady ? (
            <>
              {hasRequests && requests.map((item) => <RequestHere key={item.id} item={item} />)}
              <Part title="Last message" aside={message !== null && <RecordAgo at={message.at} />}>
                <LastMessage session={session} message={message} path={path} />
              </Part>
              {call !== null && (
                <Part title="Running now">
                  <ToolCallLine key={call.id} call={call} request={undefined} />
                </Part>
              )}
            </>
          ) : (
            <p className="mt-5 text-ink-3 text-xs">Loading…</p>
          )}
          {session.runningTaskCount > 0 && <RunningTasks session={session} path={path} isShown={isReady} />}
          {isReady && (
            <Part title="Evidence">
              <div className="text-xs">
                <ObservationTable session={session} />
              </div>
            </Part>
          )}
        </div>
      </SessionLiveness>
    </ActionsProvider>
  );
}

function Part({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="mt-6">
      <h3 className="mb-1 flex items-baseline justify-between text-2xs text-ink-3">
        <span className="font-medium text-ink-2">{title}</span>
        {aside}
      </h3>
      {children}
    </section>
  );
}

/** The newest text of the agent. */
function lastMessage(turns: readonly Turn[]): MessageItem | null {
  for (const { items } of turns.toReversed()) {
    const found = items.findLast(
      (item): item is MessageItem => item.kind === 'message' && item.role === 'assistant' && item.text.trim() !== '',
    );
    if (found !== undefined) return found;
  }
  return null;
}

/** The tool call that the agent waits for, if any. */
function runningCall(turns: readonly Turn[]): ToolCallItem | null {
  const last = turns.at(-1)?.items.findLast(({ kind }) => kind !== 'task');
  return last?.kind === 'tool-call' && last.status === 'running' ? last : null;
}

function LastMessage(props: { session: SessionSummary; message: MessageItem | null; path: string }) {
  const { session, message, path } = props;
  const text = message?.text ?? session.lastText ?? '';
  const isCut = text.length > MAX_MESSAGE;
  const end = Math.max(text.lastIndexOf('\n', MAX_MESSAGE), text.lastIndexOf(' ', MAX_MESSAGE));
  if (text === '') return <p className="text-ink-3">No message yet.</p>;
  return (
    <>
      <Markdown
        text={isCut ? text.slice(0, end > 0 ? end : MAX_MESSAGE) : text}
        // Streaming mode also closes Markdown marks that were cut off.
        streaming={isCut || (message?.streaming ?? true)}
      />
      {isCut && message !== null && (
        <p className="mt-1 text-xs">
          <Link
            href={`${path}#${messageAnchor(message.id)}`}
            prefetch={false}
            className="text-ink-3 underline underline-offset-2 hover:text-ink"
          >
            Read the rest
          </Link>
        </p>
      )}
    </>
  );
}

function RunningTasks(props: { session: SessionSummary; path: string; isShown: boolean }) {
  const { session, path, isShown } = props;
  const { tasks } = useTasks(session.id);
  const running = useMemo(() => orderTasks(tasks).filter(({ status }) => status === 'running'), [tasks]);
  if (!isShown || running.length === 0) return null;
  const more = Math.max(running.length, session.runningTaskCount) - MAX_TASKS;
  return (
    <Part title="Running tasks" aside={session.runningTaskCount.toLocaleString('en')}>
      <ul>
        {running
          .slice(0, MAX_TASKS)
          .map(namedTask)
          .map((task) => (
            <li key={task.position} className="py-1">
              <p className="flex items-center gap-2 text-2xs text-ink-3">
                <Glyph name="running" />
                <span
                  dir="auto"
                  className={clsx('min-w-0 flex-1 truncate text-ink', taskFont(task) || 'text-sm')}
                  title={nameText(task.description)}
                >
                  <Words text={task.description} />
                </span>
                <TaskStop task={task} />
                <TaskOutcome task={task} />
              </p>
              {task.hasOutput && <TaskOutputPart task={task} />}
            </li>
          ))}
      </ul>
      {more > 0 && (
        <Link
          href={`${path}?tab=tasks`}
          prefetch={false}
          className="text-ink-3 text-xs underline underline-offset-2 hover:text-ink"
        >
          {more.toLocaleString('en')} more
        </Link>
      )}
    </Part>
  );
}
