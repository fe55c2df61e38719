import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import type { RequestItem } from '@interlude/protocol/read-models';
import { withoutQuotes } from '@interlude/protocol/text';
import { RunningClock } from '@/components/ui/clock';
import { formatClock } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { useLiveness } from '@/components/ui/liveness';
import { Name, Quoted, Words } from '@/components/ui/name';
import { useServerNow } from '@/components/ui/now';
import type { InputGate } from './request-input';

/**
 * Who asks for what: the tool by the name it has, whole and in no other words, since several could share those; and in
 * quotes what the agent says of it, which is never what runs.
 *
 * @param isAll whether there is nothing else to go by: it came without an input. What is allowed by its title alone has
 *   every word in its place, also of those that run from right to left
 */
export function RequestHead({ item, isOpen, isAll }: { item: RequestItem; isOpen: boolean; isAll: boolean }) {
  const { stopped } = useLiveness();
  const { toolName: tool } = item;
  return (
    <p className="flex flex-wrap items-baseline gap-x-2 text-xs">
      <Glyph name={isOpen ? 'waiting' : 'lost'} className="relative top-[1.5px]" />
      <span className="min-w-0 flex-1 [overflow-wrap:anywhere] max-sm:basis-[calc(100%-20px)]">
        {tool !== null && (
          // In the type of code: a tool may be called “Allowed”.
          <code className="mr-2 font-medium text-ink">
            <Name text={tool} most={TOOL_NAME_CHARACTERS} signs={Number.POSITIVE_INFINITY} layout="tool" />
          </code>
        )}
        <span className={tool === null ? 'font-medium text-ink' : 'text-ink-2'}>
          {isAll && item.requestKind === 'permission' ? (
            <Quoted text={item.title} most={TITLE_CHARACTERS} signs={Number.POSITIVE_INFINITY} />
          ) : (
            <>
              “
              <bdi>
                <Words
                  text={withoutQuotes(item.title)}
                  most={TITLE_CHARACTERS}
                  {...(isAll && { signs: Number.POSITIVE_INFINITY })}
                  strict
                />
              </bdi>
              ”
            </>
          )}
        </span>
      </span>
      {isOpen && (
        <span className="tabular flex shrink-0 gap-2 text-2xs text-waiting max-sm:pl-5">
          <span>
            waiting <RunningClock since={item.at} goesOn />
          </span>
          {item.expiresAt !== null && stopped === null && <TimeLimit at={item.expiresAt} />}
        </span>
      )}
    </p>
  );
}

/** How long there is still to answer, on the server's clock. */
function TimeLimit({ at }: { at: number }) {
  const text = useServerNow((now) => (now < at ? `${formatClock(at - now + 999)} left` : 'time is up'));
  return <span>{text}</span>;
}

/**
 * A tool's name is shown whole up to here. No tool has a longer one, and nobody could say whether they have read it.
 */
const TOOL_NAME_CHARACTERS = MAX_ID_LENGTH;

const UNSEEN: Record<InputGate, string | null> = {
  open: null,
  scroll: 'Scroll through all of the input to allow it.',
  folded: 'Show all of the input, to its end, to allow it.',
};

/** A title is shown up to here. What runs is the input, but for a request that came without one. */
const TITLE_CHARACTERS = 400;

/**
 * Why a person who has only what they see to go by can't allow a request yet, else null.
 *
 * @param gate null if it came without an input
 */
export function unseenReason(
  { toolName, title }: Pick<RequestItem, 'toolName' | 'title'>,
  gate: InputGate | null,
): string | null {
  if (toolName !== null && toolName.length > TOOL_NAME_CHARACTERS) return tooLong('The name of the tool');
  if (gate !== null) return UNSEEN[gate];
  return title.length > TITLE_CHARACTERS ? tooLong('What the agent asks for') : null;
}

function tooLong(what: string): string {
  return `${what} is too long to be shown whole. Deny it, or answer where the agent runs.`;
}
