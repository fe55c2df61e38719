import type { Position } from '@interlude/protocol/position';
import { searchesText } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { useLayoutEffect, useRef } from 'react';
import { LineSearch } from './line-search';
import { SCROLLER } from './log-list';
import { type FirstLog, filterOf, LINES_IN_MARKUP } from './log-query';
import { LogRow, MarkerRow } from './log-row';
import { type LogSettings, USUAL } from './log-settings';
import { shownMessage } from './message-pieces';

/** As far as the server knows: the browser has the reader's own. Whether it is a phone, where lines wrap, its CSS knows. */
const WRAPPED = { ...USUAL, wraps: true };
/** So many lines from the end may be seen on a phone when some of them are long. */
const NEAR = 30;
const nothing = (_line: LogLine) => {};

/**
 * The newest lines as the server's markup has them, at the end of their box: there before any script is.
 * @param onPainted told how high each line is, in pixels, so that none moves when the browser takes over
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
        {page.lines.slice(-LINES_IN_MARKUP).map((line, at, { length }) => (
          <div key={line.position} data-painted={line.position} className="shrink-0">
            {line.marker ? (
              <MarkerRow line={{ ...line, marker: line.marker }} style={USUAL} isTarget={false} />
            ) : (
              <FirstLine line={line} search={search} isNear={length - at <= NEAR} />
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Of a long one more is shown where lines wrap: it is there both ways, and CSS shows the one that will stay. */
function FirstLine(props: { line: LogLine; search: LineSearch | null; isNear: boolean }) {
  const { line, search, isNear } = props;
  const [cut, wrapped] = [false, true].map((wraps) => shownMessage(line.message, wraps));
  if (!isNear || cut?.text === wrapped?.text) return <Line line={line} search={search} settings={USUAL} />;
  return (
    <>
      <div className="only-where-cut">
        <Line line={line} search={search} settings={USUAL} />
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
