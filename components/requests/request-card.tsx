'use client';

import type { RequestOption } from '@interlude/protocol/ag-ui';
import { defaultOption } from '@interlude/protocol/event-fields';
import type { RequestItem } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import {
  type KeyboardEvent,
  memo,
  type ReactNode,
  type RefObject,
  useEffectEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { useActing } from '@/components/access/may-act';
import { type ActionState, useActionState, useActions } from '@/components/live/actions';
import { useRefusal } from '@/components/live/refusals';
import { useLiveness } from '@/components/ui/liveness';
import { useSettled } from '@/components/ui/misclick-guard';
import { useHasPassed } from '@/components/ui/now';
import { isPress, isTyping } from '@/components/ui/shortcuts/use-shortcuts';
import { quoted } from '@/components/ui/verbatim';
import { PermissionAnswer } from './permission-answer';
import { QuestionAnswer } from './question-answer';
import { withExpiry, decisionOf, closedText, isAnswerPending, NO, offeredOptions, requestKey } from './request-answer';
import { useCardKeys, useOffer, useRead, useRequestDraft, useWatchedRequests } from './request-board';
import { RequestHead, unseenReason } from './request-head';
import { type InputGate, RequestInput } from './request-input';
import { AnswerElsewhere, AnswerStatus, ClosedNotice, RequestOutcome, CannotAnswer } from './request-outcome';
import { useFocusWithin } from './use-focus-within';

interface RequestCardProps {
  item: RequestItem;
  /** What the agent wants to do, as the transcript shows what tools are given. Null if it gave nothing. */
  input: ReactNode;
  /** How much that is, in words. */
  size: string;
  /** Shown outside the transcript, where its own place is out of sight. */
  pinned?: boolean;
  /** The reader is done with one that can't be answered any more. */
  onDismiss?: () => void;
}

/**
 * The agent asks a person. Open, it can be answered here; answered, it shrinks to a line. One that goes while the
 * reader is at it stays where it is and says so: nothing takes its place under their hands.
 */
export const RequestCard = memo(function RequestCard(props: RequestCardProps) {
  // What was read, typed and focused belongs to this request, and to no other one in its place.
  const { item } = props;
  const isOver = useHasPassed(item.expiresAt);
  const asked = useActionState(requestKey(item));
  const current = useMemo(() => withExpiry(item, isOver, asked), [item, isOver, asked]);
  return <Card key={requestKey(item)} {...props} item={current} asked={asked} />;
});

/** @param asked what became of an answer that was given here */
function Card(props: RequestCardProps & { asked: ActionState | null }) {
  const { item, asked, input, size, pinned = false, onDismiss } = props;
  const key = requestKey(item);
  const actions = useActions();
  const box = useRef<HTMLElement>(null);
  const row = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLDivElement>(null);
  const buttons = useRef<HTMLDivElement>(null);
  const { stopped } = useLiveness();
  const { hasFocus, leave, handlers } = useFocusWithin();
  const { isRead, markRead } = useRead(key);
  const [draft, change] = useRequestDraft(key);
  const [gate, setGate] = useState<InputGate>('scroll');
  const open = item.outcome === null;
  const gone = open ? null : closedText(item, asked);
  const stays = gone !== null && (pinned || hasFocus);
  const isQuestion = item.requestKind === 'question';
  const isBusy = isAnswerPending(item, asked);
  const refusal = useRefusal(isQuestion ? 'question.answer' : 'permission.decision');
  const { may, answersHere } = useActing();
  const isAnswerable = open && actions !== null && !isBusy && stopped === null && refusal === null;
  const canAnswer = isAnswerable && answersHere;
  const { settled, isIntended } = useSettled(box, canAnswer ? key : null, row);
  const unseen = isQuestion ? null : unseenReason(item, input === null ? null : isRead ? 'open' : gate);

  const give = (body: object) => {
    if (!canAnswer) return;
    const digest = item.digest === null ? {} : { digest: item.digest };
    actions.ask(key, `/requests/${encodeURIComponent(item.id)}`, { ...body, ...digest });
  };
  const answer = (body: object) => isIntended() && give(body);
  const options = offeredOptions(item);
  const first = defaultOption(options, 'allow');
  const deny = defaultOption(options, 'deny') ?? NO;
  const isFree = !isQuestion && canAnswer && unseen === null && first !== null;
  useOffer(isFree ? item.digest : null, () => first !== null && give(decisionOf(first)));
  const choose = (option: RequestOption | null, reason: string | null = null) => {
    if (option === null || (option.kind === 'allow' && unseen !== null)) return;
    const message = option.kind === 'deny' ? reason?.trim() : '';
    answer({ ...decisionOf(option), ...(message ? { message } : {}) });
  };
  const keys = { allow: () => choose(first), deny: () => choose(deny) };
  useCardKeys(!isQuestion && canAnswer && !pinned ? item.digest : null, keys);
  useWatchedWhile(open && !pinned, key, box, [head, buttons]);
  useKeptFocus(stays && hasFocus, box);

  if (!open && !stays) return <RequestOutcome item={item} />;
  const onKeyDown = (event: KeyboardEvent) => {
    if (isQuestion || !canAnswer || isTyping(event.nativeEvent)) return;
    if (isPress('request.allow', event)) keys.allow();
    else if (isPress('request.deny', event)) keys.deny();
    else return;
    event.preventDefault();
  };
  const failure = asked?.kind === 'failed' ? asked.reason : item.answer?.state === 'failed' ? item.answer.reason : null;
  return (
    <section
      ref={box}
      id={pinned ? undefined : `request-${item.id}`}
      data-action={key}
      data-gone={stays || undefined}
      // Where it was asked there may be another one of this name on the page.
      aria-label={`${isQuestion ? 'Question' : 'Permission'}${pinned ? ', pinned' : ''}: ${quoted(item.title)}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: its keys need a focus to go to
      tabIndex={0}
      onKeyDown={onKeyDown}
      {...handlers}
      className={clsx(
        'group/answer border-l-2 px-3 py-2 -outline-offset-2',
        stays ? 'border-line-strong border-dashed bg-raised/60' : 'border-waiting bg-waiting-soft',
        !pinned && 'my-3',
      )}
    >
      <RequestHead item={item} isOpen={open} isAll={input === null} />
      {open && !isQuestion && input === null && (
        <p className="mt-1.5 pl-5 text-ink-2 text-xs">It came without any input.</p>
      )}
      {!isQuestion && input !== null && (
        <RequestInput size={size} pinned={pinned} head={head} onRead={markRead} onGate={setGate}>
          {input}
        </RequestInput>
      )}
      {open && <CannotAnswer stopped={stopped?.why ?? null} refusal={refusal?.reason ?? null} may={may} />}
      {isAnswerable && !answersHere && <AnswerElsewhere sessionId={actions.sessionId} requestId={item.id} />}
      {canAnswer && isQuestion && (
        <QuestionAnswer
          item={item}
          row={row}
          settled={settled}
          choices={draft.choices}
          onChoices={(choices) => change({ choices })}
          onAnswer={answer}
        />
      )}
      {!isQuestion && (
        <div ref={buttons}>
          {canAnswer && (
            <PermissionAnswer
              row={row}
              settled={settled}
              unseen={unseen}
              options={options}
              first={first}
              deny={deny}
              reason={draft.reason}
              onReason={(reason) => change({ reason })}
              onChoose={(option) => choose(option, draft.reason)}
            />
          )}
        </div>
      )}
      <AnswerStatus item={item} isUnderWay={open && isBusy} failure={open ? failure : null} />
      <ClosedNotice
        of={key}
        words={stays ? gone : null}
        onDismiss={() => {
          leave();
          onDismiss?.();
        }}
      />
    </section>
  );
}

/**
 * Tells the board of a card in the transcript where the request stands in it, before the next paint: no copy flashes
 * up.
 */
function useWatchedWhile(
  isWatched: boolean,
  key: string,
  box: RefObject<HTMLElement | null>,
  parts: readonly RefObject<HTMLElement | null>[],
): void {
  const watch = useWatchedRequests();
  const partsNow = useEffectEvent(() => parts.flatMap(({ current }) => current ?? []));
  useLayoutEffect(() => {
    if (!isWatched || box.current === null) return;
    // What can't be decided on here, with the head of its input before one's eyes, is as good as out of sight.
    // Questions have neither: only what is chosen is sent, and all of it is where it is chosen.
    return watch(key, box.current, partsNow());
  }, [watch, isWatched, key, box]);
}

/** The button that had the focus may be gone with what could be answered. */
function useKeptFocus(isOurs: boolean, box: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    if (isOurs && box.current?.contains(document.activeElement) === false) box.current.focus({ preventScroll: true });
  }, [isOurs, box]);
}
