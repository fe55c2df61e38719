'use client';

import {
  createContext,
  type ReactNode,
  type RefObject,
  useCallback,
  useContext,
  useEffect,
  useEffectEvent,
  useState,
} from 'react';
import { Store } from '@/components/live/store';
import { useSelected } from '@/components/live/use-folded';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import type { Choice } from './question-answer';

interface RequestDraft {
  /** Reason of a denial; null while the field is closed. */
  reason: string | null;
  /** One choice per question, in order. */
  choices: readonly Choice[];
}

const NO_DRAFT: RequestDraft = { reason: null, choices: [] };

/** @param whole parts of the card that must be completely in sight; without any, part of the card suffices */
type Watch = (key: string, card: Element, parts?: readonly Element[]) => () => void;

/** Visible share that counts as completely in sight, because browsers round. */
const WHOLE = 0.9;

/**
 * State of a reader's open requests by `requestKey`: which are in sight, which are read to the end, and their drafts.
 * Outlives the cards, which mount and unmount as the transcript scrolls. A request may have two cards.
 */
export class RequestBoard extends Store {
  readonly #drafts = new Map<string, RequestDraft>();
  #visible: ReadonlySet<string> = new Set();
  #read: ReadonlySet<string> = new Set();
  #answerable: ReadonlyMap<string, CardAnswers> = new Map();

  get visible(): ReadonlySet<string> {
    return this.#visible;
  }

  readonly watch: Watch = (key, card, parts = []) => {
    const inSight = new Map<Element, boolean>();
    // On a busy page entries arrive in batches; the last one is current. One observer watches all parts, so that their
    // states are consistent.
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting, intersectionRatio } of entries) {
          inSight.set(target, isIntersecting && (parts.length === 0 || intersectionRatio >= WHOLE));
        }
        this.#see(key, [...inSight.values()].every(Boolean));
      },
      { threshold: [0, WHOLE] },
    );
    for (const element of parts.length === 0 ? [card] : parts) observer.observe(element);
    // Assumes that a new card is in sight until observed, or its pinned copy would flash.
    this.#see(key, true);
    return () => {
      observer.disconnect();
      this.#see(key, false);
    };
  };

  /** Permissions that can be answered now, by digest. */
  get answerable(): ReadonlyMap<string, CardAnswers> {
    return this.#answerable;
  }

  /** Registers a permission. @returns a function that unregisters it */
  readonly offer = (digest: string, answers: CardAnswers): (() => void) => {
    this.#answerable = new Map(this.#answerable).set(digest, answers);
    this.changed();
    return () => {
      if (this.#answerable.get(digest) !== answers) return;
      const others = new Map(this.#answerable);
      others.delete(digest);
      this.#answerable = others;
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
const ClosedContext = createContext<(() => void) | null>(null);

/** @param onClosed moves the focus on from a request that was answered */
export function RequestBoardProvider({
  onClosed = null,
  children,
}: {
  onClosed?: (() => void) | null;
  children: ReactNode;
}) {
  const [board] = useState(() => new RequestBoard());
  return (
    <BoardContext value={board}>
      <ClosedContext value={onClosed}>{children}</ClosedContext>
    </BoardContext>
  );
}

export function useOnClosed(): (() => void) | null {
  return useContext(ClosedContext);
}

/** The page's board, or a private one. */
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

/** Permissions on the page that can be answered together. */
export function useAnswerable(): ReadonlyMap<string, CardAnswers> {
  return useSelected(useBoard(), ({ answerable }) => answerable);
}

/**
 * Registers a permission for bulk answers.
 *
 * @param digest null while it can't be answered
 * @param canAllow true once its whole input was in sight
 */
export function useOfferAnswers(digest: string | null, canAllow: boolean, answers: CardKeys): void {
  const { offer } = useBoard();
  const give = useEffectEvent((key: keyof CardKeys) => answers[key]());
  useEffect(() => {
    if (digest === null) return;
    return offer(digest, { allow: canAllow ? () => give('allow') : null, deny: () => give('deny') });
  }, [offer, digest, canAllow]);
}

/** Read state of a request's input. */
export function useReadState(key: string): { isRead: boolean; markRead: () => void } {
  const board = useBoard();
  const isRead = useSelected(board, () => board.isRead(key));
  return { isRead, markRead: useCallback(() => board.markRead(key), [board, key]) };
}

export function useRequestDraft(key: string): [RequestDraft, (change: Partial<RequestDraft>) => void] {
  const board = useBoard();
  const draft = useSelected(board, () => board.draftOf(key));
  return [draft, useCallback((change) => board.change(key, change), [board, key])];
}

/**
 * Key handlers of a card, including its guards. `isMeant` skips the misclick guard: the reader's last key or answer
 * focused this request. They return false if a guard ignored the press.
 */
export interface CardKeys {
  allow: (isMeant?: boolean) => unknown;
  deny: (isMeant?: boolean) => unknown;
}

/** Answers a permission without the card's guards. `allow` is null until its whole input was in sight. */
interface CardAnswers {
  allow: (() => void) | null;
  deny: () => void;
}

/** Key of the bulk bar in place of a digest: its shortcuts answer all selected permissions. */
export const SELECTION = 'selection';

/** Cards that accept keys, by the digest of their request. */
const cards = new Map<string, CardKeys>();

/** Makes a card's keys available while the focus is outside the card. Null while the card can't be answered. */
export function useCardKeys(digest: string | null, keys: CardKeys): void {
  const press = useEffectEvent((key: keyof CardKeys, isMeant?: boolean) => keys[key](isMeant));
  useEffect(() => {
    if (digest === null) return;
    const own: CardKeys = { allow: (isMeant) => press('allow', isMeant), deny: (isMeant) => press('deny', isMeant) };
    cards.set(digest, own);
    return () => {
      if (cards.get(digest) === own) cards.delete(digest);
    };
  }, [digest]);
}

/** Cards in sight that accept keys: one per request, by `requestKey`. */
class ShownCards extends Store {
  #cards: ReadonlyMap<string, Element> = new Map();

  /** The only request in sight; undefined if there are several. */
  get only(): string | undefined {
    return this.#cards.size === 1 ? this.#cards.keys().next().value : undefined;
  }

  show(key: string, card: Element): () => void {
    this.#cards = new Map(this.#cards).set(key, card);
    this.changedNow();
    return () => {
      if (this.#cards.get(key) !== card) return;
      const others = new Map(this.#cards);
      others.delete(key);
      this.#cards = others;
      this.changedNow();
    };
  }
}

const shownCards = new ShownCards();

/**
 * True while the card is the only one in sight. In the inbox, keys act on rows instead.
 *
 * @param key null while the card is out of sight or can't be answered
 */
export function useOnlyShown(key: string | null, box: RefObject<HTMLElement | null>): boolean {
  useEffect(() => {
    const card = box.current;
    if (key === null || card === null || card.closest('[data-inbox-row], dialog') !== null) return;
    return shownCards.show(key, card);
  }, [key, box]);
  return useSelected(shownCards, ({ only }) => key !== null && only === key);
}

/**
 * Lets the keys of the only card in sight act while neither a card nor the row of another session has the focus, and
 * marks the card with `data-keys` then.
 */
export function OnlyCardKeys(props: { sessionId: string; keys: CardKeys; box: RefObject<HTMLElement | null> }) {
  const { sessionId, keys, box } = props;
  const mayAct = () => {
    const focused = document.activeElement?.closest<HTMLElement>('[data-action], [data-session-row]');
    return focused == null || focused.dataset.sessionRow === sessionId;
  };
  const press = (name: keyof CardKeys) => () => mayAct() && keys[name]();
  useShortcuts({ 'request.allow': press('allow'), 'request.deny': press('deny') });
  const mark = useEffectEvent((card: HTMLElement | null) => card?.toggleAttribute('data-keys', mayAct()));
  useEffect(() => {
    const card = box.current;
    const listening = new AbortController();
    mark(card);
    for (const type of ['focusin', 'focusout']) document.addEventListener(type, () => mark(card), listening);
    return () => {
      listening.abort();
      card?.removeAttribute('data-keys');
    };
  }, [box]);
  return null;
}

/** @returns null if no such card accepts keys, and false if a guard ignored the press */
export function pressCard(digest: string | null, key: keyof CardKeys, isMeant = false): boolean | null {
  const card = cards.get(digest ?? '');
  return card === undefined ? null : card[key](isMeant) !== false;
}
