'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, useState } from 'react';
import { BoardRow } from './board-row';

/** Of a row with two lines. Each is measured once it is there. */
const ROW_PX = 49;
/** Rows beyond both ends of what is in sight. */
const BEYOND = 10;
/** What the server lays out, which knows no window. */
const FIRST = { width: 0, height: 900 };

/** The rows near what is in sight, each where the whole table has it: a fleet may have thousands. */
export function BoardRows(props: {
  agents: readonly AgentSummary[];
  selected: ReadonlySet<string>;
  onSelect: (id: string, isSelected: boolean) => void;
}) {
  'use no memo';
  const { agents, selected, onSelect } = props;
  const box = useRef<HTMLDivElement>(null);
  const [above, setAbove] = useState(0);
  useEffect(() => {
    const scroller = box.current?.closest('main');
    if (scroller == null || box.current === null) return;
    // whatever stands above it may fold, or come later
    const size = new ResizeObserver(() => {
      const top = box.current?.getBoundingClientRect().top ?? 0;
      setAbove(Math.round(top - scroller.getBoundingClientRect().top + scroller.scrollTop));
    });
    size.observe(scroller);
    for (const child of scroller.children) size.observe(child);
    return () => size.disconnect();
  }, []);
  const virtualizer = useVirtualizer<HTMLElement, HTMLDivElement>({
    count: agents.length,
    getScrollElement: () => box.current?.closest('main') ?? null,
    estimateSize: () => ROW_PX,
    getItemKey: (at) => agents[at]?.id ?? at,
    overscan: BEYOND,
    scrollMargin: above,
    initialRect: FIRST,
  });
  const items = virtualizer.getVirtualItems();
  const before = (items[0]?.start ?? above) - above;
  const behind = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? above) - above);
  return (
    // They follow one another as they are: what the server guessed of their height moves none when it is known.
    // biome-ignore lint/a11y/useSemanticElements: rows that stand alone are no table rows
    <div ref={box} role="rowgroup" style={{ paddingTop: before, paddingBottom: Math.max(0, behind) }}>
      {items.map(({ key, index }) => {
        const agent = agents[index] as AgentSummary;
        return (
          <div key={key} data-index={index} ref={virtualizer.measureElement}>
            <BoardRow agent={agent} at={index} isSelected={selected.has(agent.id)} onSelect={onSelect} />
          </div>
        );
      })}
    </div>
  );
}
