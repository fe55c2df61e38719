'use client';

import { type RefObject, useLayoutEffect } from 'react';

/** Keeps a textarea as high as its text; its max-height says where it begins to scroll. */
export function useGrowing(fieldRef: RefObject<HTMLTextAreaElement | null>, text: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text is what its height depends on
  useLayoutEffect(() => {
    const element = fieldRef.current;
    if (element === null) return;
    element.style.height = 'auto';
    element.style.height = `${element.scrollHeight}px`;
  }, [fieldRef, text]);
}
