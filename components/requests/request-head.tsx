import type { RequestItem } from '@interlude/protocol/read-models';
import { withoutQuotes } from '@interlude/protocol/text';
import { RunningClock } from '@/components/ui/clock';
import { formatClock } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { useLiveness } from '@/components/ui/liveness';
import { Name, Quoted, Words } from '@/components/ui/name';
import { useServerNow } from '@/components/ui/now';
import { TITLE_CHARACTERS, TOOL_NAME_CHARACTERS } from './unseen-words';

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
