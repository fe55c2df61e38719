import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { MAX_OPTION_LABEL } from '@interlude/protocol/limits';
import type { RequestItem } from '@interlude/protocol/read-models';
import { withoutQuotes } from '@interlude/protocol/text';
import { formatDuration } from '@interlude/protocol/time';
import type { Ref } from 'react';
import { TimeOfDay } from '@/components/ui/clock';
import { Glyph } from '@/components/ui/glyph';
import { SettledButton } from '@/components/ui/misclick-guard';
import { Name, Phrase, Quoted, ToolLine, Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';
import { quoted } from '@/components/ui/verbatim';
import { inputParts } from './input-parts';
import { answerText, chosenOption, optionText, ownTitle } from './request-answer';

const OUTCOME: Record<NonNullable<RequestItem['outcome']>, string> = {
  allowed: 'Allowed',
  denied: 'Denied',
  answered: 'Answered',
  expired: 'Expired unanswered',
  cancelled: 'Withdrawn',
  unknown: 'Resolved, outcome not reported',
};

/** Longest reason that a person can give. Agents may send longer messages. */
const MAX_CHARACTERS = 4_000;

/** A closed request: outcome, author and time. */
export function RequestOutcome({ item, box = null }: { item: RequestItem; box?: Ref<HTMLElement> }) {
  const { toolName: tool } = item;
  const outcome = item.outcome ?? 'unknown';
  const chosen = chosenOption(item);
  // A request decided by its title alone shows the title verbatim.
  const isAll = item.requestKind === 'permission' && Object.keys(Object(item.input ?? {})).length === 0;
  const own = isAll || item.requestKind === 'question' ? item.title : ownTitle(item.title, tool, item.input);
  const [main] = own === null ? inputParts({ args: item.input, argsText: '' }) : [];
  const decided = outcome === 'allowed' || outcome === 'denied' || outcome === 'answered';
  // Any other decision was made in the agent's own interface.
  const by = !decided ? '' : item.answer?.state === 'done' || item.answer?.state === 'queued' ? ' by operator' : '';
  return (
    <section
      ref={box}
      id={`request-${item.id}`}
      tabIndex={-1}
      aria-label={`${item.requestKind === 'permission' ? 'Permission' : 'Question'}: ${quoted(item.title)}`}
      className="my-1 focus-quiet"
    >
      {/* The outcome follows on the same line if it fits, else on its own. */}
      <p className="relative flex flex-wrap items-baseline gap-x-2 pl-5 text-xs">
        <Glyph
          name={outcome === 'denied' ? 'stopped' : decided ? 'completed' : 'lost'}
          className="absolute top-[3px] left-0"
        />
        <span className="min-w-0 flex-auto text-ink-2 [overflow-wrap:anywhere]">
          <bdi>
            {isAll ? (
              <Quoted text={item.title} />
            ) : own === null ? (
              <ToolLine tool={tool} line={main?.text ?? ''} />
            ) : (
              <>
                “<Words text={withoutQuotes(toPlainText(own))} />”
              </>
            )}
          </bdi>
          {tool !== null && item.requestKind === 'permission' && own !== null && !own.includes(tool) && (
            <code className="text-ink-3">
              {' '}
              <Name text={tool} layout="tool" />
            </code>
          )}
          {chosen !== null && (
            <span className="text-ink-3">
              {' '}
              {chosen.isLasting && `${optionText(chosen).word}: `}
              <Quoted text={chosen.label} max={MAX_OPTION_LABEL} signs={Number.POSITIVE_INFINITY} />
            </span>
          )}
        </span>
        <span className="tabular flex shrink-0 gap-2 text-2xs text-ink-3">
          {OUTCOME[outcome]}
          {by}
          {item.resolvedAt !== null && (
            <>
              {` after ${formatDuration(item.resolvedAt - item.at)}`}
              <TimeOfDay at={item.resolvedAt} />
            </>
          )}
        </span>
      </p>
      {item.message !== null && (
        <p dir="auto" className="mt-0.5 ml-5 text-ink-2 text-xs [overflow-wrap:anywhere]">
          <Words text={item.message} max={MAX_CHARACTERS} />
        </p>
      )}
    </section>
  );
}

/** The reason an open request can't be answered here. Renders nothing if it can. */
export function CannotAnswer(props: { stopped: string | null; refusal: string | null; may: boolean }) {
  const { stopped, refusal, may } = props;
  if (stopped !== null) return <p className="mt-1.5 text-ink-2 text-xs">{stopped}: answers can’t be delivered.</p>;
  if (refusal === null) {
    return may ? null : <p className="mt-1.5 pl-5 text-ink-2 text-xs">You can view this request, but not answer it.</p>;
  }
  return (
    <p className="mt-1.5 pl-5 text-ink-2 text-xs">
      You can’t answer here: <Phrase text={refusal} />.
    </p>
  );
}

/** Link to the request in a window of its own. Frames don't accept answers, because of clickjacking. */
export function AnswerElsewhere({ sessionId, requestId }: { sessionId: string; requestId: string }) {
  return (
    <p className="mt-1.5 pl-5 text-xs">
      <a
        href={withBasePath(`/sessions/${encodeURIComponent(sessionId)}#${encodeURIComponent(`request-${requestId}`)}`)}
        target="_blank"
        rel="noopener"
        className="font-medium text-ink underline underline-offset-2 hover:text-accent"
      >
        Answer in Interlude
      </a>{' '}
      <span className="text-ink-3">(new window)</span>
    </p>
  );
}

/** State of the submitted answer: pending, or failed with the reason. */
export function AnswerStatus(props: { item: RequestItem; isPending: boolean; failure: string | null }) {
  const { item, isPending, failure } = props;
  return (
    <>
      {isPending && <p className="mt-1.5 pl-5 text-2xs text-ink-2">{answerText(item)}. Sending to the agent…</p>}
      <p aria-live="polite" className="pl-5 text-failed text-xs empty:hidden">
        {failure !== null && !isPending && (
          <>
            The answer did not reach the agent: <Phrase text={failure} />
          </>
        )}
      </p>
    </>
  );
}

/** Outcome of a request that closed while the reader was on it. */
export function ClosedNotice(props: { of: string; words: string | null; onDismiss: () => void }) {
  const { of, words, onDismiss } = props;
  return (
    <p aria-live="polite" className="mt-1.5 flex flex-wrap items-baseline gap-x-4 pl-5 text-xs empty:hidden">
      {words !== null && (
        <>
          <span className="font-medium text-ink">{words}</span>
          <SettledButton
            of={of}
            onPress={onDismiss}
            className="text-ink-2 underline hover:text-ink aria-disabled:text-ink-3"
          >
            Dismiss
          </SettledButton>
        </>
      )}
    </p>
  );
}
