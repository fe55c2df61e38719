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
import { useHasPassed } from '@/components/ui/clock';
import { useLiveness } from '@/components/ui/liveness';
import { useSettled } from '@/components/ui/misclick-guard';
import { isPress, isTyping } from '@/components/ui/shortcuts/use-shortcuts';
import { quoted } from '@/components/ui/verbatim';
import { PermissionAnswer } from './permission-answer';
import { QuestionAnswer } from './question-answer';
import {
  answerByKey,
  closedText,
  DENY,
  decisionOf,
  isAnswering,
  offeredOptions,
  requestKey,
  withExpiry,
} from './request-answer';
import {
  type CardKeys,
  OnlyCardKeys,
  useCardKeys,
  useOfferAnswers,
  useOnClosed,
  useOnlyShown,
  useReadState,
  useRequestDraft,
  useWatchedRequests,
} from './request-board';
import { RequestHead, unseenReason } from './request-head';
import { type InputGate, RequestInput } from './request-input';
import { AnswerElsewhere, AnswerStatus, CannotAnswer, ClosedNotice, RequestOutcome } from './request-outcome';
import { useFocusWithin } from './use-focus-within';

interface RequestCardProps {
  item: RequestItem;
  /** The tool input, rendered as in the transcript; null if there is none. */
  input: ReactNode;
  /** Size of the input, such as `840 characters`. */
  size: string | null;
  /** Shown outside the transcript. */
  pinned?: boolean;
  /** Called when the reader dismisses a closed request. */
  onDismiss?: () => void;
}

/**
 * A request from the agent. An open request can be answered; a closed one shrinks to a line. A request that closes
 * while the reader is on it stays in place with a notice, so that nothing else moves under the pointer.
 */
export const RequestCard = memo(function RequestCard(props: RequestCardProps) {
  // The key keeps read state, draft and focus with their request.
  const { item } = props;
  const isOver = useHasPassed(item.expiresAt);
  const state = useActionState(requestKey(item));
  const current = useMemo(() => withExpiry(item, isOver, state), [item, isOver, state]);
  return <Card key={requestKey(item)} {...props} item={current} state={state} />;
});

/** @param state of an answer given on this page */
function Card(props: RequestCardProps & { state: ActionState | null }) {
  const { item, state, input, size, pinned = false, onDismiss } = props;
  const key = requestKey(item);
  const actions = useActions();
  const box = useRef<HTMLElement>(null);
  const row = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLDivElement>(null);
  const buttons = useRef<HTMLDivElement>(null);
  const { stopped } = useLiveness();
  const { hasFocus, leave, handlers } = useFocusWithin();
  const { isRead, markRead } = useReadState(key);
  const [draft, change] = useRequestDraft(key);
  const [gate, setGate] = useState<InputGate>('scroll');
  const open = item.outcome === null;
  const notice = open ? null : closedText(item, state);
  const isNotice = notice !== null && (pinned || hasFocus);
  const isQuestion = item.requestKind === 'question';
  const isBusy = isAnswering(item, state);
  const refusal = useRefusal(isQuestion ? 'question.answer' : 'permission.decision');
  const { may, answersHere } = useActing();
  const isAnswerable = open && actions !== null && !isBusy && stopped === null && refusal === null;
  const canAnswer = isAnswerable && answersHere;
  const { settled, isIntended } = useSettled(box, canAnswer ? key : null, row);
  const unseen = isQuestion ? null : unseenReason(item, input === null ? null : isRead ? 'open' : gate);

  const give = (body: object) => {
    if (!canAnswer) return false;
    const digest = item.digest === null ? {} : { digest: item.digest };
    actions.request(key, `/requests/${encodeURIComponent(item.id)}`, { ...body, ...digest });
    return true;
  };
  const answer = (body: object, isMeant = false) => (isMeant || isIntended()) && give(body);
  const options = offeredOptions(item);
  const first = defaultOption(options, 'allow');
  const deny = defaultOption(options, 'deny') ?? DENY;
  useOfferAnswers(!isQuestion && canAnswer ? item.digest : null, unseen === null && first !== null, {
    allow: () => first !== null && give(decisionOf(first)),
    deny: () => give(decisionOf(deny)),
  });
  const choose = (option: RequestOption | null, reason: string | null = null, isMeant = false) => {
    if (option === null || (option.kind === 'allow' && unseen !== null)) return false;
    const message = option.kind === 'deny' ? reason?.trim() : '';
    return answer({ ...decisionOf(option), ...(message ? { message } : {}) }, isMeant);
  };
  const keys: CardKeys = {
    allow: (isMeant) => choose(first, null, isMeant),
    deny: (isMeant) => choose(deny, null, isMeant),
  };
  useCardKeys(!isQuestion && canAnswer && !pinned ? item.digest : null, keys);
  const isOnly = useOnlyShown(!isQuestion && settled ? key : null, box);
  useWatchedWhile(open && !pinned, key, box, [head, buttons]);
  const isClosed = !open && !isNotice;
  useKeptFocus(!hasFocus ? null : isClosed ? 'closed' : isNotice || isBusy ? 'open' : null, box);

  if (isClosed) return <RequestOutcome item={item} box={box} />;
  const onKeyDown = (event: KeyboardEvent) => {
    if (isQuestion) return answerByKey(event, box.current?.querySelector('form'));
    if (!canAnswer || isTyping(event.nativeEvent)) return;
    if (isPress('request.allow', event)) keys.allow();
    else if (isPress('request.deny', event)) keys.deny();
    else return;
    event.preventDefault();
  };
  const failure = state?.kind === 'failed' ? state.reason : item.answer?.state === 'failed' ? item.answer.reason : null;
  return (
    <section
      ref={box}
      id={pinned ? undefined : `request-${item.id}`}
      data-action={key}
      data-gone={isNotice || undefined}
      // The transcript may have a card with the same title.
      aria-label={`${isQuestion ? 'Question' : 'Permission'}${pinned ? ', pinned' : ''}: ${quoted(item.title)}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: needs the focus for its keys
      tabIndex={0}
      onKeyDown={onKeyDown}
      {...handlers}
      className={clsx(
        'group/answer border-l-2 px-3 py-2 -outline-offset-2',
        isNotice ? 'border-line-strong border-dashed bg-raised/60' : 'border-waiting bg-waiting-soft',
        !pinned && 'my-3',
      )}
    >
      {isOnly && actions !== null && <OnlyCardKeys sessionId={actions.sessionId} keys={keys} box={box} />}
      <RequestHead item={item} isOpen={open} isAll={input === null} />
      {open && !isQuestion && input === null && (
        <p className="mt-1.5 pl-5 text-ink-2 text-xs">This request has no input.</p>
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
      <AnswerStatus item={item} isPending={open && isBusy} failure={open ? failure : null} />
      <ClosedNotice
        of={key}
        words={isNotice ? notice : null}
        onDismiss={() => {
          leave();
          onDismiss?.();
        }}
      />
    </section>
  );
}

/** Registers a transcript card with the board before the next paint, so that no pinned copy flashes. */
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
    // A permission is in sight if the head of its input and its buttons are. Questions have neither part.
    return watch(key, box.current, partsNow());
  }, [watch, isWatched, key, box]);
}

/** Moves the focus when the focused button disappears: to the card, and on once the request has closed. */
function useKeptFocus(phase: 'open' | 'closed' | null, box: RefObject<HTMLElement | null>): void {
  const onClosed = useOnClosed();
  const moveFocus = useEffectEvent(() =>
    onClosed === null ? box.current?.focus({ preventScroll: true }) : onClosed(),
  );
  useLayoutEffect(() => {
    const { activeElement } = document;
    const isLost = activeElement === document.body || activeElement === null;
    if (phase === null || !(isLost || (phase === 'open' && box.current?.contains(activeElement) === false))) return;
    if (phase === 'closed') moveFocus();
    else box.current?.focus({ preventScroll: true });
  }, [phase, box]);
}
