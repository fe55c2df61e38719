import { useEffect, useEffectEvent, useState } from 'react';
import { enqueueIdle } from '@/components/ui/idle-queue';
import { MORE_WEIGHT, rowsBefore } from './row-weight';

/** How far rows have come into the page. */
interface Pass<Row> {
  rows: readonly Row[];
  /** The keys of those that are in it. */
  there: ReadonlySet<React.Key>;
  waiting: ReadonlySet<Row>;
}

interface Coming<Row> {
  keyOf: (row: Row) => React.Key;
  weightOf: (row: Row) => number;
  /** What comes with the page's own first layout. */
  firstWeight: number;
  /** What comes whatever it weighs. */
  isInSight?: (row: Row) => boolean;
}

/**
 * Of many rows that are to come into the page, the last do at once, where the reader is, as far as that is no more than
 * is laid out without a pause. The others come in turn, and what was there stays.
 *
 * @param rows the same object as long as they are the same
 * @returns those that are not in the page yet
 */
export function useWaitingRows<Row>(rows: readonly Row[], coming: Coming<Row>): ReadonlySet<Row> {
  const [pass, setPass] = useState(() => nextPass(new Set(), rows, coming));
  const now = pass.rows === rows ? pass : nextPass(pass.there, rows, coming);
  if (now !== pass) setPass(now);

  const comeFurther = useEffectEvent(() => setPass(nextPass(pass.there, rows, coming)));
  useEffect(() => {
    if (pass.waiting.size === 0) return;
    const turn = enqueueIdle(() => comeFurther());
    return () => turn.cancel();
  }, [pass]);
  return now.waiting;
}

function nextPass<Row>(there: ReadonlySet<React.Key>, rows: readonly Row[], coming: Coming<Row>): Pass<Row> {
  const { keyOf, weightOf, firstWeight, isInSight } = coming;
  const missing = rows.filter((row) => !there.has(keyOf(row)));
  const most = there.size === 0 ? firstWeight : MORE_WEIGHT;
  const from = rowsBefore(missing.length, most, (at) => weightOf(missing[at] as Row));
  const waiting = new Set(missing.slice(0, from).filter((row) => isInSight?.(row) !== true));
  return { rows, there: new Set(rows.filter((row) => !waiting.has(row)).map(keyOf)), waiting };
}
