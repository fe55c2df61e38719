'use client';

import { formatClock } from '@/components/ui/duration';
import { useServerNow } from '@/components/ui/now';

/** How long there is still to answer, on the server's clock. */
export function TimeLimit({ at }: { at: number }) {
  const text = useServerNow((now) => (now < at ? `${formatClock(at - now + 999)} left` : 'time is up'));
  return <span>{text}</span>;
}
