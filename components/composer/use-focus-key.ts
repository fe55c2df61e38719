'use client';

import { type RefObject, useEffect } from 'react';
import { isTyping } from '@/components/ui/is-typing';

/** "c" leads here from anywhere on the page. */
export function useFocusKey(field: RefObject<HTMLTextAreaElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'c' || event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
      if (isTyping(event) || document.querySelector('dialog[open]')) return;
      event.preventDefault();
      field.current?.focus();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [field]);
}
