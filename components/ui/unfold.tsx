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

/**
 * Called before a reader unfolds something: they read there now, so what follows its own end stops following it, and
 * what they opened stays where it is.
 */
export const HoldTail = createContext<() => void>(() => {});

export function useHoldTail(): () => void {
  return useContext(HoldTail);
}

/** Marks what unfolds more of a part: what stands below it moves. */
export const UNFOLDS = 'data-unfolds';

/** A part that opens below its button. @returns whether it is open, its id, and the button's props */
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

/** Shows more where it stands. */
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
      className={clsx('underline decoration-line-strong underline-offset-2 hover:text-ink', className)}
    >
      {children}
    </button>
  );
}

/** The parts of something that are still folded: who asks whether it was read must know. */
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

  /** The button that unfolds a part goes with it; a keyboard reader is kept in the box around all parts. */
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

/** Tells what this stands in that not all of it is shown. */
export function useReportFolded(isFolded: boolean): FoldedParts | null {
  const id = useId();
  const parts = useContext(FoldedPartsContext);
  useEffect(() => {
    parts?.set(id, isFolded);
    return () => parts?.set(id, false);
  }, [parts, id, isFolded]);
  return parts;
}

/** @param box what the parts stand in */
export function useFoldedParts(box: RefObject<HTMLElement | null>): { parts: FoldedParts; isAnyFolded: boolean } {
  const [parts] = useState(() => new FoldedParts(box));
  const isAnyFolded = useSyncExternalStore(
    parts.subscribe,
    () => parts.isAnyFolded,
    () => false,
  );
  return { parts, isAnyFolded };
}
