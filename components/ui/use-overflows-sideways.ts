'use client';

import { type RefObject, useEffect, useRef, useState } from 'react';

/** Whether what is in a box is wider than the box: only then there is something to scroll. Not on the server. */
export function useOverflowsSideways<Box extends HTMLElement>(): { box: RefObject<Box | null>; overflows: boolean } {
  const box = useRef<Box>(null);
  const [overflows, setOverflows] = useState(false);
  useEffect(() => {
    const outer = box.current;
    const inner = outer?.firstElementChild;
    if (!outer || !inner) return;
    // Asked for by the observer when both are laid out already.
    const observer = new ResizeObserver(() => setOverflows(outer.scrollWidth > outer.clientWidth));
    observer.observe(outer);
    observer.observe(inner);
    return () => observer.disconnect();
  }, []);
  return { box, overflows };
}
