'use client';

import type { LogLine } from '@interlude/protocol/read-models';
import { useEffect, useReducer } from 'react';
import { enqueueIdle } from '@/components/ui/idle-queue';
import { type LineAnswer, type LineSearch, UNSEARCHED } from './line-search';

/**
 * What the search says of a line: at once where there is time, else a step at a time.
 *
 * @param search null while nothing is searched for
 * @param text of the line, as much as is shown
 */
export function useLineSearch(search: LineSearch | null, line: LogLine, text: string): LineAnswer {
  const [steps, draw] = useReducer((count: number) => count + 1, 0);
  const answer = search === null ? UNSEARCHED : search.answer(line, text);
  const { isDone } = answer;

  // biome-ignore lint/correctness/useExhaustiveDependencies: after each step, the next
  useEffect(() => {
    if (search === null || isDone) return;
    const turn = enqueueIdle(() => {
      search.goOn(line, text);
      draw();
    });
    return () => turn.cancel();
  }, [search, line, text, isDone, steps]);

  return answer;
}
