'use client';

import { INBOX_KINDS, type InboxKind } from '@interlude/protocol/vocabulary';
import { clsx } from 'clsx';
import { Link } from '@/components/ui/link';
import { sumOfItems } from './inbox-items';
import { KIND_WORD } from './inbox-words';

/** Links to the kinds that are shown, which the address names. */
export function KindFilter(props: {
  /** Of each kind, loaded or not. */
  counts: Record<InboxKind, number>;
  wanted: readonly InboxKind[];
}) {
  const { counts, wanted } = props;
  const there = INBOX_KINDS.filter((kind) => wanted.includes(kind) || counts[kind] > 0);
  if (there.length < 2) return null;
  return (
    <nav aria-label="Kinds" className="flex flex-wrap gap-x-4 gap-y-1 pb-2 text-xs">
      <KindLink href="/inbox" label="All" count={sumOfItems(counts)} isCurrent={wanted.length === 0} />
      {there.map((kind) => (
        <KindLink
          key={kind}
          href={`/inbox?kind=${kind}`}
          label={KIND_WORD[kind]}
          count={counts[kind]}
          isCurrent={wanted.includes(kind)}
        />
      ))}
    </nav>
  );
}

function KindLink(props: { href: string; label: string; count: number; isCurrent: boolean }) {
  const { href, label, count, isCurrent } = props;
  return (
    <Link
      href={href}
      aria-current={isCurrent ? 'page' : undefined}
      className={clsx(
        'inline-flex min-h-6 items-center gap-1 rounded-sm',
        isCurrent ? 'font-medium text-ink' : 'text-ink-2 hover:text-ink',
      )}
    >
      {label} <span className="tabular font-normal text-ink-3">{count.toLocaleString('en')}</span>
    </Link>
  );
}
