'use client';

import type { LogMarker } from '@interlude/protocol/envelope';
import type { LogLine } from '@interlude/protocol/read-models';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import { LineTime } from './line-time';
import type { TimeStyle } from './log-time';
import { markerWords } from './log-words';

/** A place in the log rather than a line of it: where its level was changed, where older lines were removed. */
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
        <Name text={markerWords(line.marker)} />
      </span>
      <span aria-hidden="true" className="h-px min-w-4 flex-1 bg-line-strong" />
    </div>
  );
}
