import { MAX_OPTION_LABEL } from '@interlude/protocol/limits';
import type { RequestItem } from '@interlude/protocol/read-models';
import { withoutQuotes } from '@interlude/protocol/text';
import { formatDuration } from '@interlude/protocol/time';
import { TimeOfDay } from '@/components/ui/clock';
import { Glyph } from '@/components/ui/glyph';
import { Name, Quoted, Words } from '@/components/ui/name';
import { plainWords } from '@/components/ui/plain-words';
import { quoted } from '@/components/ui/verbatim';
import { chosenOption, wordsFor } from './offered';

const OUTCOME: Record<NonNullable<RequestItem['outcome']>, string> = {
  allowed: 'Allowed',
  denied: 'Denied',
  answered: 'Answered',
  expired: 'Expired unanswered',
  cancelled: 'Withdrawn',
  unknown: 'Resolved, the agent did not say how',
};

/** Longest reason the server takes of a person; an agent may say more. */
const MOST_CHARACTERS = 4_000;

/** What became of a request, by whom and when. */
export function RequestOutcome({ item }: { item: RequestItem }) {
  const { toolName: tool } = item;
  const outcome = item.outcome ?? 'unknown';
  const chosen = chosenOption(item);
  // What was decided on by its title alone is said as it was then.
  const isAll = item.requestKind === 'permission' && Object.keys(Object(item.input ?? {})).length === 0;
  const decided = outcome === 'allowed' || outcome === 'denied' || outcome === 'answered';
  // An answer that did not go through here was given where the agent runs.
  const by = !decided ? '' : item.answer?.state === 'done' || item.answer?.state === 'queued' ? ' by operator' : '';
  return (
    <section
      id={`request-${item.id}`}
      tabIndex={-1}
      aria-label={`${item.requestKind === 'permission' ? 'Permission' : 'Question'}: ${quoted(item.title)}`}
      className="my-1 outline-none"
    >
      <p className="flex flex-wrap items-baseline gap-x-2 text-xs">
        <Glyph
          name={outcome === 'denied' ? 'stopped' : decided ? 'completed' : 'lost'}
          className="relative top-[1.5px]"
        />
        <span dir="auto" className="min-w-0 text-ink-2 [overflow-wrap:anywhere]">
          {isAll ? (
            <Quoted text={item.title} />
          ) : (
            <>
              “<Words text={withoutQuotes(plainWords(item.title))} />”
            </>
          )}
        </span>
        {tool !== null && !item.title.includes(tool) && (
          <code className="text-ink-3">
            <Name text={tool} layout="tool" />
          </code>
        )}
        {chosen !== null && (
          <span className="min-w-0 text-ink-3 [overflow-wrap:anywhere]">
            {chosen.isLasting && `${wordsFor(chosen).word}: `}
            <Quoted text={chosen.label} most={MAX_OPTION_LABEL} signs={Number.POSITIVE_INFINITY} />
          </span>
        )}
        <span className="tabular ml-auto flex shrink-0 gap-2 text-2xs text-ink-3">
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
        <p dir="auto" className="mt-0.5 ml-5 max-w-prose text-ink-2 text-xs [overflow-wrap:anywhere]">
          <Words text={item.message} most={MOST_CHARACTERS} />
        </p>
      )}
    </section>
  );
}
