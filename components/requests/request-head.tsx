import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import type { RequestItem } from '@interlude/protocol/read-models';
import { withoutQuotes } from '@interlude/protocol/text';
import { formatDuration } from '@interlude/protocol/time';
import { useServerNow } from '@/components/ui/clock';
import { RunningClock } from '@/components/ui/day';
import { Glyph } from '@/components/ui/glyph';
import { useLiveness } from '@/components/ui/liveness';
import { Name, Quoted, Words } from '@/components/ui/name';
import { ownTitle } from './request-answer';
import type { InputGate } from './request-input';

/**
 * Title line of a request: the tool's exact name, and the agent's description in quotes.
 *
 * @param isAll true for a request without input: the reader decides by its title alone, which is therefore verbatim
 */
export function RequestHead({ item, isOpen, isAll }: { item: RequestItem; isOpen: boolean; isAll: boolean }) {
  const { stopped } = useLiveness();
  const { toolName: tool, title: all, input } = item;
  const isQuestion = item.requestKind === 'question';
  // The tool's name is no title: some agents report it as one.
  const title = isQuestion ? (all === tool ? null : all) : isAll ? all : ownTitle(all, tool, input);
  return (
    <p className="flex flex-wrap items-baseline gap-x-2 text-xs">
      <Glyph name={isOpen ? 'waiting' : 'lost'} className="relative top-[1.5px]" />
      <span className="min-w-0 flex-1 [overflow-wrap:anywhere] max-sm:basis-[calc(100%-20px)]">
        {isQuestion && <span className="mr-2 font-medium text-ink">Question</span>}
        {tool !== null && !isQuestion && (
          // Shown in code font: a tool may be named “Allowed”.
          <code className="mr-2 font-medium text-ink">
            <Name text={tool} max={TOOL_NAME_CHARACTERS} signs={Number.POSITIVE_INFINITY} layout="tool" />
          </code>
        )}
        {title !== null && (
          <span className={tool === null && !isQuestion ? 'font-medium text-ink' : 'text-ink-2'}>
            {isAll && item.requestKind === 'permission' ? (
              <Quoted text={title} max={TITLE_CHARACTERS} signs={Number.POSITIVE_INFINITY} />
            ) : (
              <>
                “
                <bdi>
                  <Words
                    text={withoutQuotes(title)}
                    max={TITLE_CHARACTERS}
                    {...(isAll && { signs: Number.POSITIVE_INFINITY })}
                    strict
                  />
                </bdi>
                ”
              </>
            )}
          </span>
        )}
      </span>
      {isOpen && (
        <span className="tabular flex shrink-0 gap-2 text-2xs text-waiting max-sm:pl-5">
          <span>
            waiting <RunningClock since={item.receivedAt} isServerTime alwaysRuns />
          </span>
          {item.expiresAt !== null && stopped === null && <TimeLimit at={item.expiresAt} />}
        </span>
      )}
    </p>
  );
}

/** Time left to answer, on the server's clock. */
function TimeLimit({ at }: { at: number }) {
  const text = useServerNow((now) => (now < at ? `${formatDuration(at - now + 999, true)} left` : 'time is up'));
  return <span>{text}</span>;
}

/** Longest tool name that is shown in full. Real names are shorter. */
const TOOL_NAME_CHARACTERS = MAX_ID_LENGTH;

const UNSEEN: Record<InputGate, string | null> = {
  open: null,
  scroll: 'Review the whole input to enable Allow.',
  folded: 'Show the rest of the input to enable Allow.',
};

/** Longest title that is shown in full. */
const TITLE_CHARACTERS = 400;

/**
 * Reason a request can't be allowed yet; null if it can.
 *
 * @param gate null for a request without input
 */
export function unseenReason(
  { toolName, title }: Pick<RequestItem, 'toolName' | 'title'>,
  gate: InputGate | null,
): string | null {
  if (toolName !== null && toolName.length > TOOL_NAME_CHARACTERS) return tooLong('The tool’s name');
  if (gate !== null) return UNSEEN[gate];
  return title.length > TITLE_CHARACTERS ? tooLong('The request’s title') : null;
}

function tooLong(what: string): string {
  return `${what} is too long to show in full. Deny the request, or answer in the agent’s own interface.`;
}
