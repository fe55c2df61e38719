import { type RefObject, useLayoutEffect, useRef } from 'react';

/** Ref to the last rendered value, for callbacks that run later, such as event handlers and promises. */
export function useLatest<Value>(value: Value): RefObject<Value> {
  const newest = useRef(value);
  useLayoutEffect(() => {
    newest.current = value;
  }, [value]);
  return newest;
}
