import { withBasePath } from '@interlude/protocol/base-path.mjs';
import type { RequestItem } from '@interlude/protocol/read-models';
import { Name } from '@/components/ui/name';
import { SettledButton } from '@/components/ui/settled-button';
import { answerWords } from './request-answer';

/** Why an open request can't be answered here, where it can't. */
export function WhyNotHere(props: { stopped: string | null; refusal: string | null; may: boolean }) {
  const { stopped, refusal, may } = props;
  if (stopped !== null)
    return <p className="mt-1.5 text-ink-2 text-xs">{stopped}: nobody waits for the answer here.</p>;
  if (refusal === null) {
    return may ? null : <p className="mt-1.5 pl-5 text-ink-2 text-xs">You can look here, and not answer.</p>;
  }
  return (
    <p className="mt-1.5 pl-5 text-ink-2 text-xs">
      Can’t be answered here: <Name text={refusal} />.
    </p>
  );
}

/** In a frame a press may have been meant for something that lies over it: what decides is pressed in a window of ours. */
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
      <span className="text-ink-3">in a window of its own</span>
    </p>
  );
}

/** How an answer that was given fares: under way, or why it did not arrive. */
export function AnswerFate(props: { item: RequestItem; isUnderWay: boolean; failure: string | null }) {
  const { item, isUnderWay, failure } = props;
  return (
    <>
      {isUnderWay && <p className="mt-1.5 pl-5 text-2xs text-ink-2">{answerWords(item)}, on its way to the agent…</p>}
      <p aria-live="polite" className="pl-5 text-failed text-xs empty:hidden">
        {failure !== null && !isUnderWay && (
          <>
            The answer did not reach the agent: <Name text={failure} />
          </>
        )}
      </p>
    </>
  );
}

/** What became of a request while the reader was at it, until they are done with it. Null while it is open. */
export function GoneMeanwhile(props: { of: string; words: string | null; onDismiss: () => void }) {
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
