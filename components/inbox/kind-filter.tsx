'use client';

import { clsx } from 'clsx';
import Link from 'next/link';
import { INBOX_KINDS, type InboxKind } from '@/lib/protocol/inbox';
import { MAX_PERSON_NAME } from '@/lib/protocol/limits';
import { sumOfItems } from './inbox-items';
import { KIND_WORD } from './inbox-words';

/** Which kinds are shown, in the address; and what whoever claims something here is called. */
export function KindFilter(props: {
  /** Of each kind, loaded or not. */
  counts: Record<InboxKind, number>;
  wanted: readonly InboxKind[];
  name: string;
  onRename: (name: string) => void;
}) {
  const { counts, wanted, name, onRename } = props;
  const there = INBOX_KINDS.filter((kind) => wanted.includes(kind) || counts[kind] > 0);
  return (
    <div className="flex flex-wrap items-baseline justify-between gap-x-6 gap-y-2 pb-2 text-xs">
      <nav aria-label="Kinds" className="flex flex-wrap gap-x-4 gap-y-1">
        {there.length > 1 && (
          <KindLink href="/inbox" label="All" count={sumOfItems(counts)} isCurrent={wanted.length === 0} />
        )}
        {there.length > 1 &&
          there.map((kind) => (
            <KindLink
              key={kind}
              href={`/inbox?kind=${kind}`}
              label={KIND_WORD[kind]}
              count={counts[kind]}
              isCurrent={wanted.includes(kind)}
            />
          ))}
      </nav>
      <label className="flex items-baseline gap-2 text-ink-3">
        Your name
        <input
          value={name}
          maxLength={MAX_PERSON_NAME}
          placeholder="Operator"
          onChange={(event) => onRename(event.target.value)}
          className="h-6 w-32 border-line border-b bg-transparent text-ink outline-none placeholder:text-ink-3 focus:border-accent"
        />
      </label>
    </div>
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
