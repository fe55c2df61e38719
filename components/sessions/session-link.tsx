import { clsx } from 'clsx';
import { Link } from '@/components/ui/link';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';

/** A link to a session that may not be loaded. @param anchor part of the session to show */
export function SessionLink(props: { id: string; anchor?: string; className?: string }) {
  const { id, anchor, className } = props;
  return (
    <Link
      href={`/sessions/${encodeURIComponent(id)}${anchor === undefined ? '' : `#${encodeURIComponent(anchor)}`}`}
      // in an embed, prefetching would use the cookie
      prefetch={false}
      title={`Session ${nameText(id)}`}
      className={clsx('wrap-anywhere underline underline-offset-2 hover:text-ink', className)}
    >
      session <Name text={id} max={24} />
    </Link>
  );
}
