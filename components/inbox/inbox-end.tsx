import { FoundRows, MoreRows } from '@/components/live/more-rows';
import { sumOfItems } from './inbox-items';
import type { useShownItems } from './use-shown-items';

/** The end of the inbox: the way to what is not loaded, or that there is nothing. */
export function InboxEnd({ of }: { of: ReturnType<typeof useShownItems> }) {
  const { list, more, open, groups, wanted, search, setText, isSearched, isPart } = of;
  const listed = groups.reduce((sum, { items }) => sum + items.length, 0);
  if (isSearched) {
    const count = search.found === undefined ? listed : sumOfItems(search.found.counts);
    return <FoundRows search={search} listed={listed} count={count} one="item" onAll={() => setText('')} />;
  }
  if (isPart) {
    const { found, isLoading, hasMore, error } = search;
    const ofKind = open.filter(({ kind }) => wanted.includes(kind)).length;
    const count = list === undefined ? 0 : sumOfItems(list.counts, wanted);
    if (hasMore || error !== null) return <MoreRows {...search} listed={ofKind} count={count} what="items" />;
    if (isLoading || found === undefined) {
      return (
        <p role="status" className="py-3 text-2xs text-ink-3">
          Loading…
        </p>
      );
    }
  } else if (list?.next != null) {
    return <MoreRows {...more} listed={open.length} count={list.count} what="items" />;
  }
  if (groups.length > 0) return null;
  return (
    <p className="max-w-prose py-3 text-ink-2">
      {wanted.length > 0 && (list?.count ?? 0) > 0
        ? 'Nothing of this kind needs you.'
        : 'Nothing needs you. Permissions and questions of agents, overdue replies, failures, lost agents and missing records show up here by themselves.'}
    </p>
  );
}
