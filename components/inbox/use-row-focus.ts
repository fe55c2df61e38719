'use client';

import { useLayoutEffect, useRef } from 'react';

/** The button that had the focus may be gone with what could be done: the row keeps it. */
export function useRowFocus() {
  const row = useRef<HTMLLIElement>(null);
  const hasFocus = useRef(false);
  useLayoutEffect(() => {
    if (hasFocus.current && document.activeElement === document.body) row.current?.focus();
  });
  const handlers = {
    onFocus: () => {
      hasFocus.current = true;
    },
    // What is taken away with the focus in it tells nobody.
    onBlur: () => {
      hasFocus.current = false;
    },
  };
  return { row, handlers };
}
