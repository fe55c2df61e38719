'use client';

import type { MarkInbox } from '@interlude/protocol/commands';
import type { InboxItem, InboxList, InboxMarked } from '@interlude/protocol/inbox';
import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';
import { DONE_ONCE_SEEN } from '@interlude/protocol/vocabulary';
import { useEffect, useState } from 'react';
import { postJson } from '@/components/live/fetch-json';
import { ALL, type FleetStore } from '@/components/live/fleet-store';
import { asShown, changedText } from '@/components/live/mark-items';
import { useFleet, useFleetStores } from '@/components/live/use-fleet';
import { useLiveList } from '@/components/live/use-list';
import { plural } from '@/components/ui/duration';
import type { Mark } from './item-actions';

/** Dropped items remembered, so that a slow response can't restore them. */
const MAX_DROPPED = 10_000;

/**
 * The loaded items of a page.
 *
 * Done items that no list shows are dropped, so a page that is open for days doesn't grow.
 */
class InboxItems {
  readonly #fleet: FleetStore;
  readonly #held = new Set<ReadonlySet<string>>();
  /** Dropped items with their last known position. Older responses don't restore them. */
  readonly #dropped = new Map<string, Position>();
  #resets = 0;

  constructor(fleet: FleetStore) {
    this.#fleet = fleet;
    fleet.onItem = ({ id, doneAt }) => {
      if (doneAt !== null) queueMicrotask(() => this.#dropDone([id]));
    };
  }

  /** Applies a page. */
  putList({ items, position, next }: InboxList, after?: string): void {
    const { inbox } = this.#fleet;
    const rows = this.#withoutDropped(items, position);
    this.#fleet.put('inbox', ALL, position, () => inbox.putList(ALL, { rows, position, next, after }));
  }

  /** Applies items from anywhere in the inbox; its cursor stays. */
  putFound({ items, position }: Pick<InboxList, 'items' | 'position'>): void {
    const rows = this.#withoutDropped(items, position);
    this.#fleet.put('inbox', ALL, position, () => this.#fleet.inbox.putRows(ALL, rows, position));
  }

  /** Applies the result of a mark. Adds dropped items again if the mark reopened them. */
  putMarked({ items, position }: InboxMarked): void {
    this.#fleet.put('inbox', null, position, () => {
      for (const item of this.#withoutDropped(items, position)) this.#fleet.inbox.update(item, position);
    });
  }

  /** Keeps items, even done ones, until the returned function is called. */
  retain(ids: ReadonlySet<string>): () => void {
    this.#held.add(ids);
    // Deferred, so that the next list can hold them first.
    return () =>
      queueMicrotask(() => {
        this.#held.delete(ids);
        this.#dropDone(ids);
      });
  }

  #dropDone(ids: Iterable<string>): void {
    const { inbox } = this.#fleet;
    for (const id of ids) {
      const isDone = (inbox.get(id)?.doneAt ?? null) !== null;
      if (!isDone || [...this.#held].some((held) => held.has(id))) continue;
      this.#dropped.set(id, inbox.remove(id) ?? ORIGIN);
      const [first] = this.#dropped.keys();
      if (this.#dropped.size > MAX_DROPPED && first !== undefined) this.#dropped.delete(first);
    }
  }

  #withoutDropped(items: readonly InboxItem[], position: Position): InboxItem[] {
    this.#handleResets();
    return items.filter(({ id }) => comparePositions(position, this.#dropped.get(id) ?? ORIGIN) > 0);
  }

  /** After a gap, positions of dropped items mean nothing. */
  #handleResets(): void {
    if (this.#resets === this.#fleet.resets) return;
    this.#resets = this.#fleet.resets;
    this.#dropped.clear();
  }
}

const known = new WeakMap<FleetStore, InboxItems>();

/** The inbox of a fleet store. */
export function itemsOf(fleet: FleetStore): InboxItems {
  const items = known.get(fleet) ?? new InboxItems(fleet);
  known.set(fleet, items);
  return items;
}

/** The loaded items, including those completed during this visit, and the request for more. */
export function useInbox() {
  const list = useFleet(({ inbox }) => inbox.list(ALL));
  const state = useLiveList<InboxList>({
    table: 'inbox',
    path: '/inbox',
    query: BY_OWNER,
    next: list?.next,
    put: (fleet, page, after) => itemsOf(fleet).putList(page, after),
  });
  return { list, state };
}

/** A page holds all items of each session or agent. */
export const BY_OWNER = 'by=owner';

/** Time to undo a mark. */
const UNDO_MS = 10_000;

/** The mark that reverts one, and what was done, in words. */
const REVERTED: Record<Exclude<MarkInbox['mark'], 'snoozed'>, { by: MarkInbox['mark']; words: string }> = {
  seen: { by: 'unseen', words: 'marked as seen' },
  unseen: { by: 'seen', words: 'marked as unseen' },
  claimed: { by: 'released', words: 'claimed' },
  released: { by: 'claimed', words: 'released' },
  unsnoozed: { by: 'snoozed', words: 'unsnoozed' },
};

const SILENT = { text: '', isFailure: false };

/** True if the reverse of a mark restores an item that the mark changed. */
function canRevert(mark: MarkInbox['mark'], before: InboxItem, after: InboxItem): boolean {
  if (after.doneAt !== null && !isReopenable(after.kind)) return false;
  if (mark === 'claimed') return before.claim === null;
  return mark !== 'snoozed' || (before.snoozedUntil ?? 0) <= Date.now();
}

function hasChangedSince(item: InboxItem, now: InboxItem | undefined): boolean {
  return now !== undefined && comparePositions(now.updatedPosition, item.updatedPosition) > 0;
}

/** True for kinds that `seen` completes and `unseen` reopens. */
function isReopenable(kind: InboxItem['kind']): boolean {
  return kind === 'failure' || DONE_ONCE_SEEN.includes(kind);
}

/**
 * Marks items as shown, reports the result, and offers undo for those that the mark changed, until they change again.
 * Take-overs, unsnoozes and hook failures can't be undone.
 */
export function useMarks() {
  const { fleet } = useFleetStores();
  const [message, setMessage] = useState(SILENT);
  const [undoable, setUndoable] = useState<{ items: readonly InboxItem[]; mark: MarkInbox['mark'] } | null>(null);
  useEffect(() => {
    if (message.text === '' || message.isFailure) return;
    const timer = setTimeout(() => {
      setMessage(SILENT);
      setUndoable(null);
    }, UNDO_MS);
    return () => clearTimeout(timer);
  }, [message]);
  const mark = async (items: readonly InboxItem[], change: Mark) => {
    setMessage(SILENT);
    setUndoable(null);
    const of = { items: asShown(items) };
    const body: MarkInbox =
      typeof change === 'object'
        ? { ...of, mark: 'snoozed', until: change.snoozedUntil }
        : change === 'taken-over'
          ? { ...of, mark: 'claimed', takeOver: true }
          : { ...of, mark: change };
    try {
      const marked = await postJson<InboxMarked>('/inbox/marks', body);
      itemsOf(fleet).putMarked(marked);
      const changedCount = marked.changed.length;
      const { by, words } =
        body.mark === 'snoozed' ? { by: 'unsnoozed' as const, words: 'snoozed' } : REVERTED[body.mark];
      const reverts = marked.items.filter((after) => {
        const before = items.find(({ id }) => id === after.id);
        return before !== undefined && marked.applied.includes(after.id) && canRevert(body.mark, before, after);
      });
      if (reverts.length > 0 && change !== 'taken-over' && by !== 'snoozed') setUndoable({ items: reverts, mark: by });
      if (changedCount > 0) {
        const isUndone = items.some(({ doneAt }) => doneAt !== null);
        const reason = `${plural(changedCount, 'item')} can’t be reopened after a later change.`;
        throw new Error(isUndone ? reason : changedText(changedCount));
      }
      const count = marked.applied.length;
      setMessage({ text: count === 0 ? 'Nothing changed.' : `${plural(count, 'item')} ${words}.`, isFailure: false });
    } catch (error) {
      setMessage({ text: `Could not update the items: ${(error as Error).message}`, isFailure: true });
    }
  };
  const notify = (text: string, isFailure = false) => {
    setUndoable(null);
    setMessage({ text, isFailure });
  };
  const left = useFleet(({ inbox }) =>
    JSON.stringify(
      undoable?.items.filter((item) => !hasChangedSince(item, inbox.get(item.id))).map(({ id }) => id) ?? [],
    ),
  );
  const items = undoable?.items.filter(({ id }) => (JSON.parse(left) as string[]).includes(id)) ?? [];
  const undo = undoable === null || items.length === 0 ? null : () => void mark(items, undoable.mark as Mark);
  return { mark, undo, message, notify };
}
