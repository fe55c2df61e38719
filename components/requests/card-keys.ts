import { useEffect, useEffectEvent } from 'react';

/** What the keys of a card do, with all of its guards. */
export interface CardKeys {
  allow: () => void;
  deny: () => void;
}

/** The cards that take keys now, by the digests of their requests. */
const cards = new Map<string, CardKeys>();

/** Lets whoever has the focus press a card's keys. Null: it can't be answered now. */
export function useCardKeys(digest: string | null, keys: CardKeys): void {
  const press = useEffectEvent((key: keyof CardKeys) => keys[key]());
  useEffect(() => {
    if (digest === null) return;
    const own = { allow: () => press('allow'), deny: () => press('deny') };
    cards.set(digest, own);
    return () => {
      if (cards.get(digest) === own) cards.delete(digest);
    };
  }, [digest]);
}

/** @returns whether there is such a card */
export function pressCard(digest: string | null, key: keyof CardKeys): boolean {
  const card = digest === null ? undefined : cards.get(digest);
  card?.[key]();
  return card !== undefined;
}
