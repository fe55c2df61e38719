'use client';

import { type FocusEvent, useCallback, useMemo, useRef, useState } from 'react';
import { afterPress } from '@/components/ui/misclick-guard';

/**
 * Whether the focus is in an element, or was until the element it was on went away. It stays so while the window itself
 * is not looked at, and until a press that takes the focus elsewhere is over.
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
