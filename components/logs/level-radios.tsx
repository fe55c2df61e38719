'use client';

import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/record-vocabulary';
import { clsx } from 'clsx';
import { type KeyboardEvent, useRef } from 'react';

/**
 * The levels, one of them asked for and one of them written. Arrow keys only move the focus: to press a level is to
 * turn a runner, which none passed on the way should be.
 */
export function LevelRadios(props: {
  /** What is asked, or written where nothing is asked. */
  asked: LogLevel | null;
  /** What the runner says it writes. */
  written: LogLevel | null;
  /** Nobody would act on it. */
  isOff?: boolean;
  onPick: (level: LogLevel) => void;
}) {
  const { asked, written, isOff = false, onPick } = props;
  const group = useRef<HTMLDivElement>(null);
  const reached = asked ?? 'debug';
  const move = (event: KeyboardEvent, from: number) => {
    const to = targetOf(event.key, from);
    if (to === null) return;
    event.preventDefault();
    group.current?.querySelectorAll<HTMLElement>('[role="radio"]')[to]?.focus();
  };
  return (
    <div
      ref={group}
      role="radiogroup"
      aria-label="Runner log level"
      className="flex flex-wrap rounded border border-line-strong"
    >
      {LOG_LEVELS.map((level, at) => (
        // biome-ignore lint/a11y/useSemanticElements: a native radio is chosen by the arrow key that only passes it
        <button
          key={level}
          type="button"
          role="radio"
          aria-checked={level === asked}
          tabIndex={level === reached ? 0 : -1}
          title={level === written ? 'written now' : undefined}
          aria-disabled={isOff}
          onClick={() => !isOff && onPick(level)}
          onKeyDown={(event) => move(event, at)}
          className={clsx(
            'h-6 px-2 text-xs first:rounded-l-[3px] last:rounded-r-[3px]',
            isOff
              ? 'cursor-default text-ink-3'
              : level === written
                ? 'bg-ink text-ground'
                : 'text-ink-2 hover:bg-raised hover:text-ink',
            level === asked && level !== written && 'font-medium text-waiting underline decoration-dotted',
          )}
        >
          {level}
        </button>
      ))}
    </div>
  );
}

function targetOf(key: string, from: number): number | null {
  const last = LOG_LEVELS.length - 1;
  if (key === 'ArrowRight' || key === 'ArrowDown') return from === last ? 0 : from + 1;
  if (key === 'ArrowLeft' || key === 'ArrowUp') return from === 0 ? last : from - 1;
  if (key === 'Home') return 0;
  return key === 'End' ? last : null;
}
