'use client';

import { createContext, type ReactNode, useContext, useState } from 'react';
import { ActionStore } from '@/components/live/actions';

/** What was asked of the agents on this page, by session: it outlives the folding of a row. */
export class AnswerStores {
  readonly #stores = new Map<string, ActionStore>();

  of(sessionId: string): ActionStore {
    // What failed is said by the card that asked.
    const store = this.#stores.get(sessionId) ?? new ActionStore(sessionId, () => {});
    this.#stores.set(sessionId, store);
    return store;
  }
}

const StoresContext = createContext<AnswerStores | null>(null);

export function AnswerStoresProvider({ children }: { children: ReactNode }) {
  const [stores] = useState(() => new AnswerStores());
  return <StoresContext value={stores}>{children}</StoresContext>;
}

export function useAnswerStore(sessionId: string): ActionStore {
  const stores = useContext(StoresContext);
  if (stores === null) throw new Error('AnswerStoresProvider is missing above this component');
  return stores.of(sessionId);
}
