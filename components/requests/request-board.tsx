'use client';

import { createContext, type ReactNode, useCallback, useContext, useEffect, useEffectEvent, useState } from 'react';
import { Store } from '@/components/live/store';
import { useSelected } from '@/components/live/use-folded';
import type { Choice } from './question-answer';

/** What a person has begun to answer. */
export interface RequestDraft {
  /** Why it is denied; null while no reason is asked for. */
  reason: string | null;
  /** Of each question, in order. */
  choices: readonly Choice[];
}

const NO_DRAFT: RequestDraft = { reason: null, choices: [] };

/**
 * @param whole parts of the card that must all be in sight; without any, a glimpse of the card is enough
 */
type Watch = (key: string, card: Element, whole?: readonly Element[]) => () => void;

/** Of a part: a browser rounds, and the last pixel of it is nothing to read. */
const WHOLE = 0.9;

/**
 * What the reader has to do with the open requests, by `requestKey`: which are before their eyes, which they have read
 * to the end, and what they have begun to answer. Cards come and go as the transcript lays them out, and a request may
 * have two; what belongs to one request never becomes another's.
 */
export class RequestBoard extends Store {
  readonly #drafts = new Map<string, RequestDraft>();
  #visible: ReadonlySet<string> = new Set();
  #read: ReadonlySet<string> = new Set();
  #allowable: ReadonlyMap<string, () => void> = new Map();

  get visible(): ReadonlySet<string> {
    return this.#visible;
  }

  readonly watch: Watch = (key, card, whole = []) => {
    const inSight = new Map<Element, boolean>();
    // On a busy page several looks come at once, and the last is how it is now. One observer for all parts: what one of
    // them is must not be taken together with what another one was.
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting, intersectionRatio } of entries) {
          inSight.set(target, isIntersecting && (whole.length === 0 || intersectionRatio >= WHOLE));
        }
        this.#see(key, [...inSight.values()].every(Boolean));
      },
      { threshold: [0, WHOLE] },
    );
    for (const element of whole.length === 0 ? [card] : whole) observer.observe(element);
    // Until it has been looked at: what is new is laid out where the reader is, and a copy of it would come and go.
    this.#see(key, true);
    return () => {
      observer.disconnect();
      this.#see(key, false);
    };
  };

  /** The permissions whose cards would take an "Allow" now, by their digests, each with what gives it. */
  get allowable(): ReadonlyMap<string, () => void> {
    return this.#allowable;
  }

  /** A card can be allowed, all of it having been seen, until the returned function is called. */
  readonly offer = (digest: string, allow: () => void): (() => void) => {
    this.#allowable = new Map(this.#allowable).set(digest, allow);
    this.changed();
    return () => {
      if (this.#allowable.get(digest) !== allow) return;
      const others = new Map(this.#allowable);
      others.delete(digest);
      this.#allowable = others;
      this.changed();
    };
  };

  isRead(key: string): boolean {
    return this.#read.has(key);
  }

  markRead(key: string): void {
    if (this.#read.has(key)) return;
    this.#read = new Set(this.#read).add(key);
    this.changed();
  }

  draftOf(key: string): RequestDraft {
    return this.#drafts.get(key) ?? NO_DRAFT;
  }

  change(key: string, draft: Partial<RequestDraft>): void {
    this.#drafts.set(key, { ...this.draftOf(key), ...draft });
    this.changedNow();
  }

  #see(key: string, isVisible: boolean): void {
    if (this.#visible.has(key) === isVisible) return;
    const visible = new Set(this.#visible);
    if (isVisible) visible.add(key);
    else visible.delete(key);
    this.#visible = visible;
    this.changed();
  }
}

const BoardContext = createContext<RequestBoard | null>(null);

export function RequestBoardProvider({ children }: { children: ReactNode }) {
  const [board] = useState(() => new RequestBoard());
  return <BoardContext value={board}>{children}</BoardContext>;
}

/** The page's board; where there is none, one of the card's own. */
function useBoard(): RequestBoard {
  const [own] = useState(() => new RequestBoard());
  return useContext(BoardContext) ?? own;
}

export function useWatchedRequests(): Watch {
  return useBoard().watch;
}

export function useVisibleRequests(): ReadonlySet<string> {
  return useSelected(useBoard(), ({ visible }) => visible);
}

/** What can be allowed at one press, as the cards on the page offer it. */
export function useAllowable(): ReadonlyMap<string, () => void> {
  return useSelected(useBoard(), ({ allowable }) => allowable);
}

/** Offers a card's permission to whoever allows several at once. Null: it can't be allowed now. */
export function useOffer(digest: string | null, allow: () => void): void {
  const { offer } = useBoard();
  const give = useEffectEvent(allow);
  useEffect(() => (digest === null ? undefined : offer(digest, () => give())), [offer, digest]);
}

/** Whether the reader has had all of a request's input before their eyes. */
export function useRead(key: string): { isRead: boolean; markRead: () => void } {
  const board = useBoard();
  const isRead = useSelected(board, () => board.isRead(key));
  return { isRead, markRead: useCallback(() => board.markRead(key), [board, key]) };
}

export function useRequestDraft(key: string): [RequestDraft, (change: Partial<RequestDraft>) => void] {
  const board = useBoard();
  const draft = useSelected(board, () => board.draftOf(key));
  return [draft, useCallback((change) => board.change(key, change), [board, key])];
}

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
