'use client';

import { formatClock } from '@/components/ui/duration';
import { useNow } from '@/components/ui/now';

/** How long there is still to answer. */
export function TimeLimit({ at }: { at: number }) {
  const text = useNow((now) => (now < at ? `${formatClock(at - now + 999)} left` : 'time is up'));
  return <span>{text}</span>;
}
