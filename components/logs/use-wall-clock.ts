'use client';

import { useHydrated } from '@/components/ui/now';

/** A time as the reader's own clock has it, to the second; nothing is known of it before the browser has taken over. */
export function useWallClock(): (at: number) => string {
  return useHydrated() ? clockTime : unknownTime;
}

function clockTime(at: number): string {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}

function unknownTime(): string {
  return '\u2007\u2007:\u2007\u2007:\u2007\u2007';
}
