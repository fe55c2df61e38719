'use client';

import type { LogMarker } from '@interlude/protocol/envelope';
import type { LogLine } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { ScanSearch } from 'lucide';
import { memo, type RefObject, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'react';
import { pageTransport } from '@/components/live/api-fetch';
import { useClock, useServerTime } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import { formatAgo, plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { enqueueIdle } from '@/components/ui/idle-queue';
import { longRunClass } from '@/components/ui/line-breaks';
import { Name } from '@/components/ui/name';
import { useTimeFormat } from '@/components/ui/time-format';
import { nameText } from '@/components/ui/verbatim';
import { useVisibleRow } from '@/components/ui/visible-rows';
import { indentJson, jsonTailAt } from './json-tail';
import { type LineResult, type LineSearch, UNSEARCHED } from './line-search';
import { failedHook, LEVEL_COLOUR, markerText, plainLine } from './log-format';
import { formatLogTime, fullLogTime, type LogSettings, type TimeStyle } from './log-settings';
import { previewOf } from './message-pieces';
import { MessageText } from './message-text';

interface LogRowProps {
  line: LogLine;
  /** The list whose shortcuts move the cursor. */
  list?: RefObject<HTMLElement | null>;
  settings: LogSettings;
  /** Null while nothing is searched for. */
  search: LineSearch | null;
  /** True for the line at the keyboard cursor. */
  isCursor: boolean;
  /** True for the line that a link or the search leads to. */
  isTarget: boolean;
  /** True within the shaded span of time. */
  isInSpan: boolean;
  isUnfolded: boolean;
  onLine: (line: LogLine) => void;
  onUnfold: (line: LogLine) => void;
  /** Null if every line is shown. */
  onContext: ((line: LogLine) => void) | null;
  hasLinks: boolean;
}

/** One log line: time, level, component, message. */
export const LogRow = memo(function LogRow(props: LogRowProps) {
  const { line, list, settings, search, isCursor, isTarget, isInSpan, isUnfolded, onLine, onUnfold } = props;
  const [isHovered, setIsHovered] = useState(false);
  const row = useRef<HTMLDivElement>(null);
  useVisibleRow(row, line.position);
  // The focus follows the cursor unless it is in a field.
  useEffect(() => {
    const { activeElement, body } = document;
    const isOurs = activeElement === body || list?.current?.contains(activeElement);
    if (isCursor && isOurs) row.current?.focus({ preventScroll: true });
  }, [isCursor, list]);
  // A focused line that is removed leaves the focus in the list.
  useLayoutEffect(() => {
    const own = row.current;
    return () => {
      if (own === document.activeElement) own?.closest<HTMLElement>('[role="log"]')?.focus({ preventScroll: true });
    };
  }, []);
  const { level, component, message } = line;
  const hook = failedHook(line);
  const wraps = settings.wraps || isUnfolded || isTarget;
  const jsonAt = useMemo(() => jsonTailAt(message), [message]);
  const shown = useMemo(
    () => (isUnfolded ? unfolded(message, jsonAt) : previewOf(message, wraps)),
    [message, jsonAt, wraps, isUnfolded],
  );
  const { isFound, hits } = useLineSearch(search, line, shown.text);
  const canUnfold = isUnfolded || jsonAt !== null || shown.rest !== null || (!wraps && message.length > 60);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles keys
    // biome-ignore lint/a11y/noStaticElementInteractions: see above
    <div
      ref={row}
      data-line={line.position}
      data-in-span={isInSpan || undefined}
      tabIndex={isCursor ? 0 : -1}
      onPointerEnter={() => setIsHovered(true)}
      onPointerLeave={() => setIsHovered(false)}
      onClick={() => {
        if (document.getSelection()?.isCollapsed !== false) onLine(line);
      }}
      className={clsx(
        'log-line group/line relative border-l-2 pr-3 pl-2.5 -outline-offset-2 @2xl:flex @2xl:gap-x-[1ch] @2xl:pl-3.5',
        // In a narrow box the message continues below the time.
        wraps
          ? '@max-2xl:pl-[calc(10px+2ch)] @max-2xl:-indent-[2ch]'
          : '@max-2xl:overflow-hidden @max-2xl:text-ellipsis @max-2xl:whitespace-pre',
        isTarget ? 'border-accent bg-accent-soft' : isInSpan ? 'border-ink-2 bg-raised/60' : 'border-transparent',
        hook !== null && !isTarget && 'border-failed! bg-failed-soft',
        isCursor && !isTarget && (isInSpan ? 'bg-line-strong/60!' : 'bg-raised'),
        !isCursor && hook === null && !isTarget && !isInSpan && 'hover:bg-sunken',
        // Dimmed: not found by the search.
        isFound === false && '**:text-ink-3!',
      )}
    >
      <LineTime at={line.occurredAt} style={settings} />
      <span className={clsx('shrink-0 @max-2xl:mr-[1ch] @2xl:w-[6ch]', LEVEL_COLOUR[level])}>
        <span aria-hidden="true" className="uppercase @2xl:hidden">
          {level[0]}
        </span>
        <span className="@max-2xl:sr-only">{level}</span>
      </span>
      <span className="hidden w-[16ch] shrink-0 truncate text-ink-3 @2xl:block" title={nameText(component)}>
        <Name text={component} />
      </span>
      <FoldButton
        canUnfold={canUnfold}
        isUnfolded={isUnfolded}
        isJson={jsonAt !== null}
        onlyWhereCut={!isUnfolded && jsonAt === null && shown.rest === null}
        onClick={() => onUnfold(line)}
      />
      <div
        className={clsx(
          'min-w-0 flex-1 [tab-size:4] @max-2xl:inline @2xl:overflow-hidden',
          wraps ? 'whitespace-pre-wrap [overflow-wrap:anywhere]' : 'whitespace-pre text-ellipsis',
          level === 'debug' ? 'text-ink-2' : level === 'error' || level === 'fatal' ? 'text-failed' : 'text-ink',
          longRunClass(shown.text),
        )}
      >
        {component !== '' && (
          <span className="text-ink-3 @2xl:hidden">
            <Name text={component} />{' '}
          </span>
        )}
        {hook !== null && (
          <strong className="font-semibold">
            Hook <Name text={hook} /> failed:{' '}
          </strong>
        )}
        {/* A separate element, so that a search for the message finds it without the component. */}
        <bdi>
          <MessageText message={shown.text} hits={hits} isUnfolded={isUnfolded} />
        </bdi>
        {shown.rest !== null && (
          <button
            type="button"
            onClick={(event) => {
              event.stopPropagation();
              onUnfold(line);
            }}
            className="ml-[1ch] text-ink-3 underline decoration-line-strong underline-offset-2 hover:text-ink"
          >
            {shown.rest}
          </button>
        )}
      </div>
      {line.redacted !== undefined && line.redacted > 0 && <Redacted count={line.redacted} />}
      {(isHovered || isCursor) && <LineActions line={line} onContext={props.onContext} hasLink={props.hasLinks} />}
    </div>
  );
});

function unfolded(message: string, jsonAt: number | null) {
  if (jsonAt === null) return { text: message.trimEnd(), rest: null };
  const before = message.slice(0, jsonAt).trimEnd();
  return { text: `${before}${before === '' ? '' : '\n'}${indentJson(message.slice(jsonAt))}`, rest: null };
}

function Redacted({ count }: { count: number }) {
  return (
    <span className="h-4 shrink-0 self-center rounded-sm bg-waiting-soft px-1 text-2xs text-waiting @max-2xl:ml-[1ch]">
      {plural(count, 'secret')} removed
    </span>
  );
}

function FoldButton(props: {
  canUnfold: boolean;
  isUnfolded: boolean;
  isJson: boolean;
  /** True if wrapping shows the whole line: the button is then hidden where lines wrap. */
  onlyWhereCut: boolean;
  onClick: () => void;
}) {
  const { canUnfold, isUnfolded, isJson, onlyWhereCut, onClick } = props;
  if (!canUnfold) return <span className="w-[1ch] shrink-0 @max-2xl:hidden" />;
  return (
    <button
      type="button"
      tabIndex={-1}
      aria-expanded={isUnfolded}
      aria-label={isJson ? 'Unfold the JSON' : 'Unfold the line'}
      onClick={(event) => {
        event.stopPropagation();
        onClick();
      }}
      className={clsx(
        'hit h-(--log-line) w-[1ch] shrink-0 indent-0 text-ink-3 hover:text-ink @max-2xl:mr-[1ch]',
        onlyWhereCut && 'only-where-cut',
        !isJson && !isUnfolded && 'opacity-0 focus-visible:opacity-100 group-hover/line:opacity-100',
      )}
    >
      <span aria-hidden="true" className={clsx('inline-block transition-transform', isUnfolded && 'rotate-90')}>
        ›
      </span>
    </button>
  );
}

/**
 * The search result for a line: immediately if there is time, else in steps.
 *
 * @param search null while nothing is searched for
 * @param text the shown part of the line
 */
function useLineSearch(search: LineSearch | null, line: LogLine, text: string): LineResult {
  const [steps, draw] = useReducer((count: number) => count + 1, 0);
  const result = search === null ? UNSEARCHED : search.result(line, text);
  const { isDone } = result;

  // biome-ignore lint/correctness/useExhaustiveDependencies: after each step, the next
  useEffect(() => {
    if (search === null || isDone) return;
    const turn = enqueueIdle(() => {
      search.advance(line, text);
      draw();
    });
    return () => turn.cancel();
  }, [search, line, text, isDone, steps]);

  return result;
}

/** Buttons at the end of a line. */
function LineActions(props: { line: LogLine; onContext: ((line: LogLine) => void) | null; hasLink: boolean }) {
  const { line, onContext, hasLink } = props;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: only stops clicks from reaching the line
    // biome-ignore lint/a11y/noStaticElementInteractions: see above
    <span
      onClick={(event) => event.stopPropagation()}
      className="absolute top-0 right-2 flex h-(--log-line) indent-0 items-center gap-2 rounded bg-raised px-1.5 font-sans"
    >
      {onContext !== null && (
        <button
          type="button"
          aria-label="Show in context"
          title="Show in context"
          onClick={() => onContext(line)}
          className="hit text-ink-3 hover:text-ink"
        >
          <Icon of={ScanSearch} size={13} strokeWidth={1.75} />
        </button>
      )}
      {/* The URL of an iframe can't be opened on its own. */}
      {hasLink && pageTransport.fetch === null && (
        <CopyButton
          label="Copy link to line"
          icon="link"
          text={() => `${location.origin}${location.pathname}#${line.position}`}
        />
      )}
      <CopyButton label="Copy line" text={() => plainLine(line)} />
    </span>
  );
}

/** A marker in the log: its level changed, or older lines were removed. */
export function MarkerRow(props: { line: LogLine & { marker: LogMarker }; style: TimeStyle; isTarget: boolean }) {
  const { line, style, isTarget } = props;
  return (
    <div
      data-line={line.position}
      title={nameText(line.message)}
      className={`log-line flex items-center gap-x-[1ch] border-l-2 pr-3 pl-2.5 text-ink-3 sm:pl-3.5 ${isTarget ? 'border-accent bg-accent-soft' : 'border-transparent'}`}
    >
      {line.marker.kind === 'level' && <LineTime at={line.occurredAt} style={style} />}
      <span className="min-w-0 truncate font-sans text-2xs">
        <Name text={markerText(line.marker)} />
      </span>
      <span aria-hidden="true" className="h-px min-w-4 flex-1 bg-line-strong" />
    </div>
  );
}

const UNKNOWN = (
  <>
    {'        '}
    <span className="@max-2xl:hidden">{'    '}</span>
  </>
);

/** The time of a line by the runner's clock. */
function LineTime({ at, style }: { at: number; style: TimeStyle }) {
  const { isRelative, isUtc } = style;
  const format = useTimeFormat();
  const serverAt = useServerTime(at);
  const text = useClock((now) =>
    isRelative ? formatAgo(now - serverAt) : formatLogTime(at, isUtc, at, format?.is12Hour),
  );
  // The server doesn't know the reader's time zone.
  if (format === null && !isUtc) return <time className="shrink-0 whitespace-pre @max-2xl:mr-[1ch]">{UNKNOWN}</time>;
  const millisAt = text.indexOf('.');
  return (
    <time
      title={fullLogTime(at, isUtc)}
      className={clsx('shrink-0 text-ink-3 @max-2xl:mr-[1ch]', isRelative && 'w-[6ch] text-right')}
    >
      {isRelative ? text : text.slice(0, millisAt)}
      {/* Milliseconds only where they fit. */}
      {!isRelative && <span className="@max-2xl:hidden">{text.slice(millisAt, millisAt + 4)}</span>}
      {!isRelative && text.slice(millisAt + 4)}
    </time>
  );
}
