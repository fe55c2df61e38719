'use client';

import type { Item, RequestItem, Turn } from '@interlude/protocol/read-models';
import { createContext, type ReactNode, useContext, useMemo, useState } from 'react';

/** What was asked about each of some calls, by the call's id. */
export type AskedRequests = Pick<ReadonlyMap<string, RequestItem>, 'get'>;

const NONE: ReadonlyMap<string, RequestItem> = new Map();

const Elsewhere = createContext<AskedRequests>(NONE);

/**
 * Requests that stand apart from the call they are about: a run may end in order to ask, and what a subagent wants to do
 * is asked in the turn, while its calls stand in the card of its task.
 */
export function RequestsElsewhere({ turns, children }: { turns: readonly Turn[]; children: ReactNode }) {
  // The same while they are: a turn that grows renders no other one.
  const found = useMemo(() => new Map(turns.flatMap(({ items }) => [...apartIn(items)])), [turns]);
  const [known, setKnown] = useState(found);
  const isSame = found.size === known.size && [...found].every(([id, request]) => known.get(id) === request);
  if (!isSame) setKnown(found);
  return <Elsewhere value={isSame ? known : found}>{children}</Elsewhere>;
}

export function useRequestsElsewhere(): AskedRequests {
  return useContext(Elsewhere);
}

const apart = new WeakMap<readonly Item[], ReadonlyMap<string, RequestItem>>();

/** Those of a turn whose call is not in it; of a turn that did not change they are known. */
function apartIn(items: readonly Item[]): ReadonlyMap<string, RequestItem> {
  const known = apart.get(items);
  if (known !== undefined) return known;
  const found = new Map<string, RequestItem>();
  for (const item of items) if (item.kind === 'request' && item.toolCallId !== null) found.set(item.toolCallId, item);
  if (found.size > 0) for (const item of items) if (item.kind === 'tool-call') found.delete(item.id);
  apart.set(items, found);
  return found;
}
