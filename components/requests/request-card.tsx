'use client';

import { clsx } from 'clsx';
import { type KeyboardEvent, memo, type ReactNode, useEffect, useRef } from 'react';
import { type ActionState, useActionState, useActions } from '@/components/live/actions';
import { plainText } from '@/components/ui/ansi';
import { RunningClock } from '@/components/ui/clock';
import { Glyph } from '@/components/ui/glyph';
import { isTyping } from '@/components/ui/is-typing';
import { useLiveness } from '@/components/ui/liveness';
import type { RequestItem } from '@/lib/protocol/read-models';
import { PermissionAnswer } from './permission-answer';
import { QuestionAnswer } from './question-answer';
import { useWatchedRequests } from './request-board';
import { requestKey } from './request-key';
import { RequestOutcome } from './request-outcome';
import { TimeLimit } from './time-limit';

interface RequestCardProps {
  item: RequestItem;
  /** What the agent wants to do, as the transcript shows what tools are given. */
  input: ReactNode;
  /** The tool's name as people say it, where the title does not name it. */
  tool: string | null;
  /** Shown outside the transcript, where its own place is out of sight. */
  pinned?: boolean;
}

/** The agent asks a person. Open, it can be answered here; answered, it shrinks to a line. */
export const RequestCard = memo(function RequestCard({ item, input, tool, pinned = false }: RequestCardProps) {
  const actions = useActions();
  const asked = useActionState(requestKey(item));
  const box = useRef<HTMLElement>(null);
  const watch = useWatchedRequests();
  const { stopped } = useLiveness();
  const open = item.outcome === null;
  useEffect(() => {
    if (pinned || !open || box.current === null) return;
    return watch(item.id, box.current);
  }, [watch, pinned, open, item.id]);

  if (!open) return <RequestOutcome item={item} tool={tool} />;
  const isBusy = isUnderWay(item, asked);
  const canAnswer = actions !== null && !isBusy && stopped === null;
  const answer = (body: object) => {
    if (canAnswer) actions.ask(requestKey(item), `/requests/${encodeURIComponent(item.id)}`, body);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (item.requestKind !== 'permission' || isTyping(event.nativeEvent)) return;
    if (event.metaKey || event.ctrlKey || event.altKey || actions === null) return;
    if (event.key !== 'a' && event.key !== 'd') return;
    event.preventDefault();
    answer({ behavior: event.key === 'a' ? 'allow' : 'deny' });
  };
  const isQuestion = item.requestKind === 'question';
  const failure = asked?.kind === 'failed' ? asked.reason : item.answer?.state === 'failed' ? item.answer.reason : null;
  return (
    <section
      ref={box}
      id={pinned ? undefined : `request-${item.id}`}
      data-action={requestKey(item)}
      // Where it was asked there may be another one of this name on the page.
      aria-label={`${isQuestion ? 'Question' : 'Permission'}${pinned ? ', pinned' : ''}: ${item.title}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: its keys need a focus to go to
      tabIndex={0}
      onKeyDown={onKeyDown}
      className={clsx('border-waiting border-l-2 bg-waiting-soft px-3 py-2 -outline-offset-2', !pinned && 'my-3')}
    >
      <p className="flex flex-wrap items-baseline gap-x-2 text-xs">
        <Glyph name="waiting" className="relative top-[1.5px]" />
        <span className="min-w-0 flex-1 max-sm:basis-[calc(100%-20px)]">
          <span className="font-medium text-ink [overflow-wrap:anywhere]">{plainText(item.title)}</span>
          {tool !== null && <span className="ml-2 text-ink-3">{tool}</span>}
        </span>
        <span className="tabular flex shrink-0 gap-2 text-2xs text-waiting max-sm:pl-5">
          <span>
            waiting <RunningClock since={item.at} />
          </span>
          {item.expiresAt !== null && stopped === null && <TimeLimit at={item.expiresAt} />}
        </span>
      </p>
      {!isQuestion && input !== null && <div className="mt-1.5 max-h-60 overflow-y-auto">{input}</div>}
      {stopped !== null && (
        <p className="mt-1.5 text-ink-2 text-xs">{stopped.why}: nobody waits for the answer here.</p>
      )}
      {canAnswer && isQuestion && <QuestionAnswer item={item} onAnswer={answer} />}
      {canAnswer && !isQuestion && <PermissionAnswer onAnswer={answer} />}
      {isBusy && <p className="mt-1.5 pl-5 text-2xs text-ink-2">{answerWords(item)}, on its way to the agent…</p>}
      <p aria-live="polite" className="pl-5 text-failed text-xs empty:hidden">
        {failure !== null && !isBusy ? `The answer did not reach the agent: ${failure}` : null}
      </p>
    </section>
  );
});

/** Whether an answer was given that has not failed. The request says so by itself once the server has told. */
function isUnderWay({ answer }: RequestItem, asked: ActionState | null): boolean {
  if (asked?.kind === 'sending') return true;
  if (asked?.kind === 'asked' && answer?.commandId !== asked.commandId) return true;
  return answer !== null && answer.state !== 'failed';
}

function answerWords(item: RequestItem): string {
  if (item.answer?.behavior === 'allow') return 'Allowed';
  if (item.answer?.behavior === 'deny') return 'Denied';
  return 'Answered';
}
