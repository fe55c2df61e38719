'use client';

import { clsx } from 'clsx';
import { type ReactNode, type RefObject, useEffect, useRef, useSyncExternalStore } from 'react';

let marked = '';
const listeners = new Set<() => void>();

/** Marks the setting with this id, now or when its page shows it. */
export function markSetting(id: string): void {
  marked = id;
  for (const notify of listeners) notify();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const CONTROL = ':is(button, input, select):not(:disabled), a[href]';

/** Scrolls to the marked setting and focuses its first control. @returns true if this is the marked one */
export function useMark(id: string | undefined, box: RefObject<HTMLElement | null>): boolean {
  const isMarked = useSyncExternalStore(
    subscribe,
    () => id !== undefined && marked === id,
    () => false,
  );
  useEffect(() => {
    if (!isMarked || box.current === null) return;
    box.current.scrollIntoView({ block: 'center' });
    const control =
      box.current.querySelector<HTMLElement>(':checked') ?? box.current.querySelector<HTMLElement>(CONTROL);
    (control ?? box.current).focus({ preventScroll: true });
  }, [isMarked, box]);
  return isMarked;
}

export const MARK = 'rounded-sm outline-2 outline-ink-2 outline-offset-4';

/** A setting: its name, what it does, and its control. The control is named by `${id}-name`. */
export function Setting(props: { id: string; name: string; about?: ReactNode; children: ReactNode }) {
  const { id, name, about, children } = props;
  const box = useRef<HTMLDivElement>(null);
  const isMarked = useMark(id, box);
  return (
    <div
      ref={box}
      id={id}
      tabIndex={-1}
      data-marked={isMarked || undefined}
      className={clsx(
        'flex flex-wrap items-center justify-between gap-x-8 gap-y-2 border-line border-b py-3 last:border-0',
        isMarked && MARK,
      )}
    >
      <div className="min-w-0 max-w-prose flex-[1_1_14rem]">
        <h3 id={`${id}-name`} className="font-medium">
          {name}
        </h3>
        {about !== undefined && <p className="text-pretty text-ink-3 text-xs">{about}</p>}
      </div>
      {children}
    </div>
  );
}

/** One of a few options, side by side. */
export function Choice<Value extends string>(props: {
  /** Id of the setting. */
  of: string;
  value: Value;
  options: readonly (readonly [value: Value, word: string])[];
  onChange: (value: Value) => void;
}) {
  const { of, value, options, onChange } = props;
  return (
    <div
      role="radiogroup"
      aria-labelledby={`${of}-name`}
      className="flex flex-wrap rounded-md border border-line-strong p-0.5"
    >
      {options.map(([one, word]) => (
        <label
          key={one}
          className="flex min-h-7 cursor-pointer items-center rounded px-3 text-ink-2 hover:text-ink has-checked:bg-raised has-checked:font-medium has-checked:text-ink has-focus-visible:outline-2 has-focus-visible:outline-accent pointer-coarse:min-h-11"
        >
          <input
            type="radio"
            name={of}
            value={one}
            checked={value === one}
            onChange={() => onChange(one)}
            className="sr-only"
          />
          {word}
        </label>
      ))}
    </div>
  );
}
