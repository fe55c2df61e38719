import type { Position } from '@interlude/protocol/position';
import { searchesText } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { useLayoutEffect, useRef } from 'react';
import { LineSearch } from './line-search';
import { SCROLLER } from './log-list';
import { type FirstLog, filterOf, LINES_IN_MARKUP } from './log-query';
import { LogRow, MarkerRow } from './log-row';
import { DEFAULT_SETTINGS, type LogSettings } from './log-settings';
import { previewOf } from './message-pieces';

/** The server doesn't know the reader's settings. CSS decides between cut and wrapped lines on a phone. */
const WRAPPED = { ...DEFAULT_SETTINGS, wraps: true };
/** Number of lines near the end that a phone may show, even if some are long. */
const NEAR = 30;
const nothing = (_line: LogLine) => {};

/**
 * The newest lines in the server's markup, readable before any script runs.
 * @param onPainted gets the height of each line in pixels, so that no line moves when the browser takes over
 */
export function FirstLines(props: { first: FirstLog; onPainted: (heights: ReadonlyMap<Position, number>) => void }) {
  const { first, onPainted } = props;
  const { query, page } = first;
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const rows = Array.from(box.current?.querySelectorAll<HTMLElement>('[data-painted]') ?? []);
    onPainted(new Map(rows.map((row) => [row.dataset.painted ?? '', Math.round(row.getBoundingClientRect().height)])));
  }, [onPainted]);
  const filter = filterOf(query, null);
  const search = searchesText(filter) ? new LineSearch(filter, false) : null;
  return (
    <div role="log" aria-label="Agent log" aria-live="off" aria-busy="true" className={SCROLLER}>
      <div ref={box} className="first-lines flex min-h-full max-h-full flex-col justify-end overflow-hidden pt-8 pb-2">
        {page.lines.slice(-LINES_IN_MARKUP).map((line, index, { length }) => (
          <div key={line.position} data-painted={line.position} className="shrink-0">
            {line.marker ? (
              <MarkerRow line={{ ...line, marker: line.marker }} style={DEFAULT_SETTINGS} isTarget={false} />
            ) : (
              <FirstLine line={line} search={search} isNear={length - index <= NEAR} />
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

/** A line. Wrapping shows more of a long line, so the markup has both versions and CSS shows one. */
function FirstLine(props: { line: LogLine; search: LineSearch | null; isNear: boolean }) {
  const { line, search, isNear } = props;
  const [cut, wrapped] = [false, true].map((wraps) => previewOf(line.message, wraps));
  if (!isNear || cut?.text === wrapped?.text) return <Line line={line} search={search} settings={DEFAULT_SETTINGS} />;
  return (
    <>
      <div className="only-where-cut">
        <Line line={line} search={search} settings={DEFAULT_SETTINGS} />
      </div>
      <div className="only-where-wrapped">
        <Line line={line} search={search} settings={WRAPPED} />
      </div>
    </>
  );
}

function Line({ line, search, settings }: { line: LogLine; search: LineSearch | null; settings: LogSettings }) {
  return (
    <LogRow
      line={line}
      settings={settings}
      search={search}
      isCursor={false}
      isTarget={false}
      isInSpan={false}
      isUnfolded={false}
      onLine={nothing}
      onUnfold={nothing}
      onContext={null}
      hasLinks
    />
  );
}
