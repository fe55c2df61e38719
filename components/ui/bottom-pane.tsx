'use client';

import { clsx } from 'clsx';
import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState } from 'react';
import { useStored } from './browser-storage';

const MIN_PERCENT = 15;
const MAX_PERCENT = 85;
const STEP_PERCENT = 4;

/**
 * A resizable pane at the bottom of a column. Its height, in percent of the column, is stored in the browser and changes
 * without rendering the rest of the column.
 */
export function BottomPane(props: {
  id: string;
  /** Name of the content, such as `Log`. */
  name: string;
  storageKey: string;
  usualPercent: number;
  className?: string;
  children: ReactNode;
}) {
  const { id, name, storageKey, usualPercent, className, children } = props;
  const [stored, store] = useStored(storageKey);
  const [drawn, setDrawn] = useState<number | null>(null);
  const pane = useRef<HTMLDivElement>(null);
  const percent = drawn ?? within(Number(stored ?? usualPercent) || usualPercent);

  const keep = (next: number) => store(String(Math.round(within(next))));
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    const column = pane.current?.parentElement?.getBoundingClientRect();
    if (!column || !event.currentTarget.hasPointerCapture(event.pointerId)) return;
    setDrawn(within(((column.bottom - event.clientY) / column.height) * 100));
  };
  const onRelease = () => {
    if (drawn !== null) keep(drawn);
    setDrawn(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = STEPS[event.key]?.(percent);
    if (next === undefined) return;
    event.preventDefault();
    keep(next);
  };

  return (
    <div
      ref={pane}
      style={{ height: `${percent}%` }}
      className={clsx('relative flex max-h-[calc(100%-140px)] min-h-[120px] shrink-0 flex-col border-t', className)}
    >
      {/* biome-ignore lint/a11y/useSemanticElements: an <hr> can't be dragged */}
      <div
        role="separator"
        aria-label={`${name} height`}
        aria-orientation="horizontal"
        aria-controls={id}
        aria-valuenow={Math.round(percent)}
        aria-valuemin={MIN_PERCENT}
        aria-valuemax={MAX_PERCENT}
        aria-valuetext={`${Math.round(percent)} percent`}
        tabIndex={0}
        onPointerDown={(event) => event.button === 0 && event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={onPointerMove}
        onLostPointerCapture={onRelease}
        onDoubleClick={() => keep(usualPercent)}
        onKeyDown={onKeyDown}
        className="group/split absolute inset-x-0 -top-[5px] z-10 h-[9px] cursor-row-resize touch-none outline-none"
      >
        <div className="mt-[4px] h-px bg-transparent transition-colors group-hocus/split:bg-accent group-active/split:bg-accent" />
      </div>
      {children}
    </div>
  );
}

const STEPS: Record<string, (percent: number) => number> = {
  ArrowUp: (percent) => percent + STEP_PERCENT,
  ArrowDown: (percent) => percent - STEP_PERCENT,
  Home: () => MIN_PERCENT,
  End: () => MAX_PERCENT,
};

function within(percent: number): number {
  return Math.min(MAX_PERCENT, Math.max(MIN_PERCENT, percent));
}
