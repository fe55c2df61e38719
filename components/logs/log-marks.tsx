import type { Position } from '@interlude/protocol/position';
import type { LogLine, LogPage } from '@interlude/protocol/read-models';
import { LOG_LEVELS } from '@interlude/protocol/vocabulary';
import { type MouseEvent, useEffect, useEffectEvent, useRef, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import type { LogStore } from './log-store';
import type { LogRows } from './use-log-rows';

/** Minimum time between updates, however fast lines arrive. */
const DRAW_EVERY_MS = 300;
/** Number of places along the height. A place has one mark of each kind at most. */
const PLACES = 200;
/** Maximum number of lines of each kind that are marked. */
const MAX_LINES = 2_000;
/** Number of lines to load of errors and above, and of warnings and above. */
const NEWEST = 200;

type Mark = Pick<LogLine, 'line' | 'position'>;
/** The line to go to, by place. */
type Places = ReadonlyMap<number, Position>;

/** The kinds differ in shape, too: a warning has the right half, an error the whole width, a hit the left half. */
const KINDS = [
  { kind: 'warn', from: 3, width: 3, className: 'stroke-waiting' },
  { kind: 'error', from: 0, width: 6, className: 'stroke-failed' },
  { kind: 'hit', from: 0, width: 3, className: 'stroke-ink' },
] as const;

/**
 * Marks beside the scrollbar for errors, warnings and hits. A click on a mark leads to its line. Hidden from assistive
 * technology, which has buttons and keys for the next and previous one.
 *
 * Covers the lines that were held since the log was opened, and the newest errors and warnings of an unfiltered log.
 */
export function LogMarks(props: {
  store: LogStore;
  /** Hits among other lines; null if nothing is searched for, or only hits are shown. */
  hits: LogStore | null;
  rows: LogRows;
  onMark: (position: Position) => void;
}) {
  const { store, hits, rows, onMark } = props;
  const { heightPx, boxPx } = rows;
  const [places, setPlaces] = useState<Record<(typeof KINDS)[number]['kind'], Places> | null>(null);
  const [noted] = useState(() => ({ warn: new Map<Position, Mark>(), error: new Map<Position, Mark>() }));
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const note = (lines: Iterable<LogLine>) => {
    // If the filter lists only this level, every line would have a mark.
    const least = Math.max(LOG_LEVELS.indexOf('warn'), LOG_LEVELS.indexOf(store.query.level ?? 'debug') + 1);
    for (const { level, marker, line, position } of lines) {
      if (LOG_LEVELS.indexOf(level) < least || marker !== undefined) continue;
      noted[level === 'warn' ? 'warn' : 'error'].set(position, { line, position });
    }
    for (const marks of [noted.warn, noted.error]) {
      if (marks.size <= MAX_LINES) continue;
      const surplus = [...marks.values()].sort((a, b) => a.line - b.line).slice(0, -MAX_LINES);
      for (const { position } of surplus) marks.delete(position);
    }
  };
  const draw = useEffectEvent(() => {
    timer.current = undefined;
    note(store.window.lines());
    const placesOf = (marks: Iterable<Mark>): Places =>
      new Map(Array.from(marks, (mark) => [placeOf(mark, store, rows), mark.position]));
    setPlaces({
      warn: placesOf(noted.warn.values()),
      error: placesOf(noted.error.values()),
      hit: placesOf([...(hits?.window.lines() ?? [])].filter(({ marker }) => marker === undefined).slice(-MAX_LINES)),
    });
  });
  const drawSoon = useEffectEvent(() => {
    timer.current ??= setTimeout(() => draw(), DRAW_EVERY_MS);
  });
  const onFound = useEffectEvent((lines: Iterable<LogLine>) => {
    note(lines);
    drawSoon();
  });

  useEffect(() => {
    const stops = [store, hits].map((one) => one?.subscribe(() => drawSoon()));
    return () => {
      for (const stop of stops) stop?.();
    };
  }, [store, hits]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the places depend on them
  useEffect(() => drawSoon(), [hits, heightPx, boxPx]);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  useEffect(() => {
    const { window, agentId } = store;
    if (!window.isDense || window.heldCount === window.lineCount) return;
    let isOver = false;
    for (const level of ['warn', 'error']) {
      fetchJson<LogPage>(`/agents/${encodeURIComponent(agentId)}/logs?level=${level}&limit=${NEWEST}`).then(
        ({ lines }) => isOver || onFound(lines),
        // Without them, the marks cover fewer lines.
        () => {},
      );
    }
    return () => {
      isOver = true;
    };
  }, [store]);

  if (places === null) return null;
  const onClick = ({ currentTarget, clientY }: MouseEvent<SVGElement>) => {
    const { top, height } = currentTarget.getBoundingClientRect();
    const at = ((clientY - top) / height) * PLACES - 0.5;
    const marks = [places.error, places.hit, places.warn].flatMap((some) => [...some]);
    const [nearest] = marks.sort(([a], [b]) => Math.abs(a - at) - Math.abs(b - at));
    if (nearest !== undefined) onMark(nearest[1]);
  };
  return (
    <svg
      aria-hidden="true"
      viewBox={`0 0 6 ${PLACES}`}
      preserveAspectRatio="none"
      style={{ height: boxPx }}
      onClick={onClick}
      className="pointer-events-none sticky top-0 block w-1.5 **:[vector-effect:non-scaling-stroke]"
    >
      {KINDS.map(({ kind, from, width, className }) => {
        const path = Array.from(places[kind].keys(), (place) => `M${from} ${place + 0.5}h${width}`).join('');
        return (
          <g key={kind}>
            <path d={path} strokeWidth={3} className={className} />
            {/* A wider target for the mouse. Touch screens have the buttons. */}
            <path d={path} strokeWidth={9} className="cursor-pointer pointer-fine:[pointer-events:stroke]" />
          </g>
        );
      })}
    </svg>
  );
}

/** The place of a line along the log's height. */
function placeOf({ line }: Mark, { window }: LogStore, { startOf, heightPx }: LogRows): number {
  const row = window.indexOfNumber(line);
  const middle = (startOf(row) + startOf(row + 1)) / 2;
  return Math.max(0, Math.min(Math.floor((middle / heightPx) * PLACES), PLACES - 1));
}
