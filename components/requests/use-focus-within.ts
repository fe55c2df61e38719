'use client';

import { type FocusEvent, useCallback, useMemo, useState } from 'react';

/**
 * Whether the focus is in an element, or was until the element it was on went away. It stays so while the window itself
 * is not looked at.
 */
export function useFocusWithin() {
  const [hasFocus, setHasFocus] = useState(false);
  const leave = useCallback(() => setHasFocus(false), []);
  const handlers = useMemo(
    () => ({
      onFocus: () => setHasFocus(true),
      onBlur: ({ currentTarget, relatedTarget }: FocusEvent) => {
        if (currentTarget.contains(relatedTarget) || !document.hasFocus()) return;
        setHasFocus(false);
      },
    }),
    [],
  );
  return { hasFocus, leave, handlers };
}
