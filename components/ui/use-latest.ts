import { type RefObject, useLayoutEffect, useRef } from 'react';

/** What was last shown, for what runs later and is not an effect: a press, a promise, a frame. */
export function useLatest<Value>(value: Value): RefObject<Value> {
  const newest = useRef(value);
  useLayoutEffect(() => {
    newest.current = value;
  }, [value]);
  return newest;
}
