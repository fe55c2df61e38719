'use client';

import { type FocusEvent, useCallback, useMemo, useRef, useState } from 'react';
import { afterPress } from '@/components/ui/after-press';

/**
 * True while the focus is in an element, even if the focused descendant was removed or the window lost the focus. A press
 * that moves the focus out takes effect after its click.
 */
export function useFocusWithin() {
  const [hasFocus, setHasFocus] = useState(false);
  const stay = useRef(() => {});
  const leave = useCallback(() => setHasFocus(false), []);
  const handlers = useMemo(
    () => ({
      onFocus: () => {
        stay.current();
        setHasFocus(true);
      },
      onBlur: ({ currentTarget, relatedTarget }: FocusEvent) => {
        if (currentTarget.contains(relatedTarget) || !document.hasFocus()) return;
        stay.current = afterPress(() => setHasFocus(false));
      },
    }),
    [],
  );
  return { hasFocus, leave, handlers };
}
