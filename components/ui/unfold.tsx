'use client';

import { clsx } from 'clsx';
import {
  createContext,
  type ReactNode,
  type RefObject,
  useContext,
  useEffect,
  useId,
  useState,
  useSyncExternalStore,
} from 'react';

/** Called before the reader unfolds something, to stop following the end, which would scroll it away. */
export const HoldTail = createContext<() => void>(() => {});

export function useHoldTail(): () => void {
  return useContext(HoldTail);
}

/** Attribute of buttons that unfold more: a press moves everything below. */
export const UNFOLDS = 'data-unfolds';

/** A part that opens below its button. @returns its state, its id and the button's props */
export function useDisclosure(isOpenAtFirst = false) {
  const [open, setOpen] = useState(isOpenAtFirst);
  const id = useId();
  const hold = useHoldTail();
  const onClick = () => {
    hold();
    setOpen(!open);
  };
  return { open, id, button: { 'aria-expanded': open, 'aria-controls': open ? id : undefined, onClick } };
}

export function UnfoldButton(props: { onPress: () => void; className?: string; children: ReactNode }) {
  const { onPress, className, children } = props;
  const hold = useHoldTail();
  return (
    <button
      type="button"
      {...{ [UNFOLDS]: '' }}
      onClick={() => {
        hold();
        onPress();
      }}
      className={clsx('min-h-6 underline decoration-line-strong underline-offset-2 hover:text-ink', className)}
    >
      {children}
    </button>
  );
}

/** Tracks the folded parts of a box. A box with folded parts does not count as read. */
class FoldedParts {
  readonly #folded = new Set<string>();
  readonly #listeners = new Set<() => void>();
  readonly #box: RefObject<HTMLElement | null>;

  constructor(box: RefObject<HTMLElement | null>) {
    this.#box = box;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get isAnyFolded(): boolean {
    return this.#folded.size > 0;
  }

  /** Moves the focus to the box before an unfold button that has it disappears. */
  takeFocus(): void {
    this.#box.current?.focus({ preventScroll: true });
  }

  set(id: string, isFolded: boolean): void {
    if (this.#folded.has(id) === isFolded) return;
    if (isFolded) this.#folded.add(id);
    else this.#folded.delete(id);
    for (const listener of this.#listeners) listener();
  }
}

export const FoldedPartsContext = createContext<FoldedParts | null>(null);

/** Reports to the enclosing box that a part is not shown in full. */
export function useReportFolded(isFolded: boolean): FoldedParts | null {
  const id = useId();
  const parts = useContext(FoldedPartsContext);
  useEffect(() => {
    parts?.set(id, isFolded);
    return () => parts?.set(id, false);
  }, [parts, id, isFolded]);
  return parts;
}

/** @param box contains the parts */
export function useFoldedParts(box: RefObject<HTMLElement | null>): { parts: FoldedParts; isAnyFolded: boolean } {
  const [parts] = useState(() => new FoldedParts(box));
  const isAnyFolded = useSyncExternalStore(
    parts.subscribe,
    () => parts.isAnyFolded,
    () => false,
  );
  return { parts, isAnyFolded };
}
