import { INBOX_KINDS, type InboxKind } from '@interlude/protocol/vocabulary';
import { clsx } from 'clsx';
import { Link } from '@/components/ui/link';
import { useStrip } from '@/components/ui/list-controls';
import { KIND_WORD } from './inbox-labels';

/** Filters by kind. The URL contains the filter. */
export function KindFilter(props: {
  /** Rows with an item of each kind that needs the reader, including those not loaded. */
  counts: Record<InboxKind, number>;
  wanted: readonly InboxKind[];
}) {
  const { counts, wanted } = props;
  const strip = useStrip(wanted.join());
  const shown = INBOX_KINDS.filter((kind) => wanted.includes(kind) || counts[kind] > 0);
  if (shown.length < 2) return null;
  return (
    <nav aria-label="Kinds" className="-mx-4 sm:mx-0">
      <div ref={strip} className="strip scroll-sideways gap-x-4 gap-y-1 px-4 text-xs sm:flex-wrap sm:px-0">
        <KindLink href="/inbox" label="All" isCurrent={wanted.length === 0} />
        {shown.map((kind) => (
          <KindLink
            key={kind}
            href={`/inbox?kind=${kind}`}
            label={KIND_WORD[kind]}
            count={counts[kind]}
            isCurrent={wanted.includes(kind)}
          />
        ))}
      </div>
    </nav>
  );
}

function KindLink(props: { href: string; label: string; count?: number; isCurrent: boolean }) {
  const { href, label, count, isCurrent } = props;
  return (
    <Link
      href={href}
      aria-current={isCurrent ? 'page' : undefined}
      className={clsx(
        'inline-flex min-h-6 min-w-6 items-center gap-1 rounded-sm',
        // its target is wider than its word
        count === undefined && 'pointer-coarse:-mr-6',
        isCurrent ? 'font-medium text-ink' : 'text-ink-2 hover:text-ink',
      )}
    >
      {label}
      {count !== undefined && <span className="tabular font-normal text-ink-3">{count.toLocaleString('en')}</span>}
    </Link>
  );
}
